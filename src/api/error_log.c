/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Error Log Management. The log holds the newest 25,600 bytes of the messages that ct_fail writes for failed calls. All
 * functions work before cuInit. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/log_callbacks.h"
#include "core/base/log_history.h"

#include <stdio.h>
#include <stdlib.h>

#define CT_CHANNEL "api"

/* cuLogsRegisterCallback. Each failed API call invokes callbackFunc before it returns, with the line that is added to the log; all lines
 * are errors. Calls that fail concurrently invoke it concurrently. Errors of API calls inside callbackFunc are not reported.
 * callback_out may be NULL. INVALID_VALUE: callbackFunc is NULL; OUT_OF_MEMORY. */
CUresult CUDAAPI cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData, CUlogsCallbackHandle *callback_out)
{
    if (!callbackFunc)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "callbackFunc is NULL");
    return ct_log_callbacks_add(callbackFunc, userData, callback_out) == CUDA_SUCCESS
               ? CUDA_SUCCESS
               : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the registration of a callback");
}

/* cuLogsUnregisterCallback. Waits until the function has returned in all other threads; the function itself may call this.
 * INVALID_VALUE: callback is not registered. */
CUresult CUDAAPI cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
    return ct_log_callbacks_remove(callback) == CUDA_SUCCESS
               ? CUDA_SUCCESS
               : ct_fail(CUDA_ERROR_INVALID_VALUE, "%p is not a registered callback", (void *)callback);
}

/* cuLogsCurrent. Sets *iterator_out to the position after the newest line. INVALID_VALUE: it is NULL, or flags are not 0. */
CUresult CUDAAPI cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
    if (!iterator_out || flags != 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuLogsCurrent: iterator_out is NULL, or flags are %#x instead of 0", flags);
    *iterator_out = ct_log_history_end();
    return CUDA_SUCCESS;
}

/* cuLogsDumpToMemory. Copies the lines from *iterator on (NULL: all lines) to buffer, with a terminating NUL; *size is the size of the
 * buffer in bytes on input and the length of the text on output. Advances *iterator past the newest line. INVALID_VALUE: buffer or size
 * is NULL, flags are not 0, or the first line does not fit; *size is set to 0 in the last case. */
CUresult CUDAAPI cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
    CUlogIterator all = ct_log_history_begin();

    if (!buffer || !size || flags != 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuLogsDumpToMemory: buffer or size is NULL, or flags are %#x instead of 0", flags);
    return ct_log_history_read(iterator ? iterator : &all, buffer, size);
}

/* cuLogsDumpToFile. Writes the lines from *iterator on (NULL: all lines) to a new file, and advances *iterator past the newest line.
 * INVALID_VALUE: pathToFile is NULL, flags are not 0, or the file cannot be written. */
CUresult CUDAAPI cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
    CUlogIterator from = iterator ? *iterator : ct_log_history_begin();
    size_t size = CT_LOG_HISTORY_BYTES + 256; /* the whole history and a header line */
    char *text;
    FILE *file;
    bool written;

    if (!pathToFile || flags != 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuLogsDumpToFile: pathToFile is NULL, or flags are %#x instead of 0", flags);
    if (!(text = malloc(size)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "cuLogsDumpToFile: no memory for %zu bytes", size);
    ct_log_history_read(&from, text, &size); /* cannot fail: the buffer is large enough */
    file = fopen(pathToFile, "w");
    written = file && fwrite(text, 1, size, file) == size;
    written = file && fclose(file) == 0 && written;
    free(text);
    if (!written)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuLogsDumpToFile: cannot write %s", pathToFile);
    if (iterator)
        *iterator = from;
    return CUDA_SUCCESS;
}

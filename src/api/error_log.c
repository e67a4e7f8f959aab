/* SPDX-License-Identifier: Apache-2.0 */
/* Driver API: Error Log Management. The log holds what ct_fail said of calls that failed, the newest 25,600 bytes; all functions work
 * before cuInit. */
#include "entry_points.h"

#include "core/base/log.h"
#include "core/base/log_callbacks.h"
#include "core/base/log_history.h"

#include <stdio.h>
#include <stdlib.h>

#define CT_CHANNEL "api"

/* cuLogsRegisterCallback. Whoever fails calls callbackFunc before its own call comes back, with the line that the log gets, all of them
 * errors; from several threads at once if they fail at once. What callbackFunc itself gets wrong is not told. callback_out may be NULL.
 * INVALID_VALUE: callbackFunc is NULL; OUT_OF_MEMORY. */
CUresult CUDAAPI cuLogsRegisterCallback(CUlogsCallback callbackFunc, void *userData, CUlogsCallbackHandle *callback_out)
{
    if (!callbackFunc)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "callbackFunc is NULL");
    return ct_log_callbacks_add(callbackFunc, userData, callback_out) == CUDA_SUCCESS
               ? CUDA_SUCCESS
               : ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "registration of a callback");
}

/* cuLogsUnregisterCallback. Waits for calls of the function in other threads; it may be called by the function itself.
 * INVALID_VALUE: no registration. */
CUresult CUDAAPI cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
    return ct_log_callbacks_remove(callback) == CUDA_SUCCESS
               ? CUDA_SUCCESS
               : ct_fail(CUDA_ERROR_INVALID_VALUE, "%p is no registration of a callback", (void *)callback);
}

/* cuLogsCurrent. *iterator_out stands behind the newest line. INVALID_VALUE: it is NULL, or flags are not 0. */
CUresult CUDAAPI cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
    if (!iterator_out || flags != 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuLogsCurrent: no place for the iterator, or flags %#x", flags);
    *iterator_out = ct_log_history_end();
    return CUDA_SUCCESS;
}

/* cuLogsDumpToMemory. Copies the lines from *iterator on (NULL: all) to buffer, ended by 0; *size is the room in bytes and becomes the
 * length of the text. *iterator moves behind the newest line.
 * INVALID_VALUE: buffer or size is NULL, flags are not 0, or not one line fits; in the last case *size becomes 0. */
CUresult CUDAAPI cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
    CUlogIterator all = ct_log_history_begin();

    if (!buffer || !size || flags != 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuLogsDumpToMemory: no buffer, no size, or flags %#x", flags);
    return ct_log_history_read(iterator ? iterator : &all, buffer, size);
}

/* cuLogsDumpToFile. Writes the lines from *iterator on (NULL: all) to a new file, and moves *iterator behind the newest.
 * INVALID_VALUE: no path, flags are not 0, or the file cannot be written. */
CUresult CUDAAPI cuLogsDumpToFile(CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
    CUlogIterator from = iterator ? *iterator : ct_log_history_begin();
    size_t size = CT_LOG_HISTORY_BYTES + 256; /* all there can be, and a line at the head */
    char *text;
    FILE *file;
    bool written;

    if (!pathToFile || flags != 0)
        return ct_fail(CUDA_ERROR_INVALID_VALUE, "cuLogsDumpToFile: no path, or flags %#x", flags);
    if (!(text = malloc(size)))
        return ct_fail(CUDA_ERROR_OUT_OF_MEMORY, "cuLogsDumpToFile: %zu bytes", size);
    ct_log_history_read(&from, text, &size); /* the room suffices */
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

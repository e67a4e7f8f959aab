/* SPDX-License-Identifier: Apache-2.0 */
/* Pointers that a program passes may be wrong, or lead to arrays without elements; what they point to is read by process_vm_readv, which returns an
 * error where a load would fault. That is a system call, so what is in the caller's frames, as most of it is, is read directly. */
#include "arguments.h"

#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* The thread's stack; empty if it is unknown. */
struct stack {
    uintptr_t begin, end;
    bool is_asked;
};

static struct stack thread_stack(void)
{
    static _Thread_local struct stack stack;
    pthread_attr_t attributes;
    void *lowest;
    size_t size_bytes;

    if (stack.is_asked)
        return stack;
    stack.is_asked = true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return stack;
    if (pthread_attr_getstack(&attributes, &lowest, &size_bytes) == 0) {
        stack.begin = (uintptr_t)lowest;
        stack.end = stack.begin + size_bytes;
    }
    pthread_attr_destroy(&attributes);
    return stack;
}

/* Whether this is in frames of our callers, which are not those of a coroutine. */
static bool is_in_frames(uintptr_t address, size_t size_bytes)
{
    const struct stack stack = thread_stack();
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

    return frame >= stack.begin && address > frame && address < stack.end && size_bytes <= stack.end - address;
}

bool arguments_read(void *to, const void *from, size_t size_bytes)
{
    const struct iovec local = {to, size_bytes}, remote = {(void *)from, size_bytes};

    if (is_in_frames((uintptr_t)from, size_bytes)) {
        memcpy(to, from, size_bytes);
        return true;
    }
    return from && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size_bytes;
}

/* Records a text, cut off at TRACE_TEXT_BYTES_MAX. */
static void record_text(struct trace_record *record, unsigned argument, const char *text)
{
    char copy[TRACE_TEXT_BYTES_MAX];
    /* It may end just before a page that does not exist. */
    const size_t in_page = TRACE_PAGE_BYTES - ((uintptr_t)text & (TRACE_PAGE_BYTES - 1)),
                 first = in_page < sizeof copy ? in_page : sizeof copy;

    if (!arguments_read(copy, text, first))
        return;
    if (!memchr(copy, 0, first) && first < sizeof copy && !arguments_read(copy + first, text + first, sizeof copy - first))
        return;
    recorder_field(record, TRACE_TEXT, argument, copy, strnlen(copy, sizeof copy));
}

static void record_pointee(struct trace_record *record, unsigned argument, const void *pointer, size_t size_bytes)
{
    char copy[512];

    if (size_bytes <= sizeof copy && arguments_read(copy, pointer, size_bytes))
        recorder_field(record, TRACE_POINTEE, argument, copy, size_bytes);
}

void arguments_record_inputs(struct trace_record *record, const struct forward_call *call)
{
    for (unsigned i = 0; i < call->plan->signature.count; i++) {
        const struct signature_parameter *parameter = &call->plan->signature.parameters[i];
        const struct forward_value *value = &call->values[i];

        recorder_field(record, TRACE_VALUE, i, value->address, value->size_bytes);
        if (parameter->pointers != 1 || !parameter->is_const)
            continue;
        if (parameter->is_text)
            record_text(record, i, *(const char *const *)value->address);
        else if (parameter->type)
            record_pointee(record, i, *(const void *const *)value->address, parameter->type->size_bytes);
    }
}

void arguments_record_outputs(struct trace_record *record, const struct forward_call *call)
{
    for (unsigned i = 0; i < call->plan->signature.count; i++) {
        const struct signature_parameter *parameter = &call->plan->signature.parameters[i];
        const void *pointer, *text;

        if (!parameter->pointers || (parameter->pointers == 1 && parameter->is_const))
            continue;
        pointer = *(const void *const *)call->values[i].address;
        if (parameter->is_text && parameter->pointers == 2 && arguments_read(&text, pointer, sizeof text))
            record_text(record, i, text);
        else if (parameter->is_text && strcmp(call->plan->base_name, "cuDeviceGetLuid") != 0) /* which is no text */
            record_text(record, i, pointer);
        else if (parameter->pointers == 2 && !parameter->is_const)
            record_pointee(record, i, pointer, sizeof(void *));
        else if (parameter->pointers == 1 && parameter->type)
            record_pointee(record, i, pointer, parameter->type->size_bytes);
    }
}

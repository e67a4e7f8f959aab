/* SPDX-License-Identifier: Apache-2.0 */
/* Events between processes (Driver API: cuIpcGetEventHandle, cuIpcOpenEventHandle), with real processes: the other process executes requests
 * that it receives through a socket. A plain program of the driver API: NVIDIA's own driver must pass, too. */
#include "../api/memory/seeds.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define EVENT_FLAGS (CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)

enum order {
    OPEN,       /* the handle's event */
    QUERY,      /* the opened event */
    WAIT,       /* in a stream, for the opened event; returns the result of the stream's query */
    FINISH,     /* waits for that stream */
    SYNC,       /* waits for the opened event on the host */
    RECORD,     /* the opened event, after a gate */
    SHARE,      /* an event of its own; returns its handle */
    RECORD_OWN, /* that event, after a gate */
    OPEN_GATE,
    CLOSE, /* the opened event */
};

struct message {
    enum order order;
    CUresult result;
    CUipcEventHandle handle;
};

/* ---- the other process ---- */

struct other {
    CUevent opened, own;
    CUstream stream;
    struct seeds_gate gate;
};

static CUresult record_behind_gate(struct other *other, CUevent event)
{
    seeds_gate_make(&other->gate);
    return cuEventRecord(event, other->gate.stream);
}

static CUresult obey(struct other *other, struct message *message)
{
    CUresult r;

    switch (message->order) {
    case OPEN:
        return cuIpcOpenEventHandle(&other->opened, message->handle);
    case QUERY:
        return cuEventQuery(other->opened);
    case WAIT:
        r = cuStreamWaitEvent(other->stream, other->opened, 0);
        return r == CUDA_SUCCESS ? cuStreamQuery(other->stream) : r;
    case FINISH:
        return cuStreamSynchronize(other->stream);
    case SYNC:
        return cuEventSynchronize(other->opened);
    case RECORD:
        return record_behind_gate(other, other->opened);
    case SHARE:
        r = cuEventCreate(&other->own, EVENT_FLAGS);
        return r == CUDA_SUCCESS ? cuIpcGetEventHandle(&message->handle, other->own) : r;
    case RECORD_OWN:
        return record_behind_gate(other, other->own);
    case OPEN_GATE:
        seeds_gate_finish(&other->gate);
        return CUDA_SUCCESS;
    case CLOSE:
        return cuEventDestroy(other->opened);
    }
    return CUDA_ERROR_UNKNOWN;
}

static _Noreturn void run_other(int socket)
{
    struct other other = {0};
    struct message message;
    void *context;

    if (with_context(&context) != 0 || cuStreamCreate(&other.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
        _exit(2);
    while (read(socket, &message, sizeof message) == sizeof message) {
        message.result = obey(&other, &message);
        if (write(socket, &message, sizeof message) != sizeof message)
            break;
    }
    _exit(0);
}

/* ---- this process ---- */

static struct peer {
    pid_t pid;
    int socket;
} peers[2]; /* created before cuInit, since CUDA does not survive a fork; the second one is killed */

static void make_peer(struct peer *peer)
{
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
        exit(2);
    peer->pid = fork();
    if (peer->pid == 0) {
        close(sockets[0]);
        run_other(sockets[1]);
    }
    close(sockets[1]);
    peer->socket = sockets[0];
}

static CUresult tell(const struct peer *peer, enum order order, CUipcEventHandle *handle)
{
    struct message message = {.order = order};

    if (handle)
        message.handle = *handle;
    assert_int_equal(write(peer->socket, &message, sizeof message), sizeof message);
    assert_int_equal(read(peer->socket, &message, sizeof message), sizeof message);
    if (handle)
        *handle = message.handle;
    return message.result;
}

static CUevent make_shared(CUipcEventHandle *handle)
{
    CUevent event;

    ok(cuEventCreate(&event, EVENT_FLAGS));
    ok(cuIpcGetEventHandle(handle, event));
    return event;
}

/* "cuEventRecord, cuEventSynchronize, cuStreamWaitEvent and cuEventQuery may be used in either process": the other process sees records of this one. */
static void others_see_our_records(void **state)
{
    CUipcEventHandle handle = {0};
    CUevent event = make_shared(&handle);
    struct seeds_gate gate;
    CUresult r;

    (void)state;
    ok(tell(&peers[0], OPEN, &handle));
    ok(tell(&peers[0], QUERY, NULL)); /* never recorded */
    for (int i = 0; (r = tell(&peers[0], WAIT, NULL)) == CUDA_ERROR_NOT_READY && i < 1000; i++)
        usleep(1000); /* there is nothing to wait for, but a driver may enqueue a command */
    ok(r);
    seeds_gate_make(&gate);
    ok(cuEventRecord(event, gate.stream));
    gives(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    gives(CUDA_ERROR_NOT_READY, tell(&peers[0], QUERY, NULL));
    gives(CUDA_ERROR_NOT_READY, tell(&peers[0], WAIT, NULL));
    seeds_gate_finish(&gate);
    ok(tell(&peers[0], FINISH, NULL));
    ok(tell(&peers[0], SYNC, NULL));
    ok(tell(&peers[0], QUERY, NULL));
    ok(tell(&peers[0], CLOSE, NULL));
    ok(cuEventQuery(event));
    ok(cuEventDestroy(event));
}

static void we_see_records_of_others(void **state)
{
    CUipcEventHandle handle = {0};
    CUevent event = make_shared(&handle);
    CUstream stream;

    (void)state;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(tell(&peers[0], OPEN, &handle));
    ok(tell(&peers[0], RECORD, NULL));
    gives(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    ok(cuStreamWaitEvent(stream, event, 0));
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    ok(tell(&peers[0], OPEN_GATE, NULL));
    ok(cuStreamSynchronize(stream));
    ok(cuEventSynchronize(event));
    ok(cuEventQuery(event));
    ok(tell(&peers[0], CLOSE, NULL));
    ok(cuStreamDestroy(stream));
    ok(cuEventDestroy(event));
}

/* Alternately: each record replaces the last one, in whichever process that was. */
static void records_alternate(void **state)
{
    CUipcEventHandle handle = {0};
    CUevent event = make_shared(&handle);

    (void)state;
    ok(tell(&peers[0], OPEN, &handle));
    for (int i = 0; i < 20; i++) {
        struct seeds_gate gate;

        seeds_gate_make(&gate);
        ok(cuEventRecord(event, gate.stream));
        gives(CUDA_ERROR_NOT_READY, tell(&peers[0], QUERY, NULL));
        seeds_gate_finish(&gate);
        ok(tell(&peers[0], SYNC, NULL));
        ok(tell(&peers[0], RECORD, NULL));
        gives(CUDA_ERROR_NOT_READY, cuEventQuery(event));
        ok(tell(&peers[0], OPEN_GATE, NULL));
        ok(cuEventSynchronize(event));
    }
    ok(tell(&peers[0], CLOSE, NULL));
    ok(cuEventDestroy(event));
}

static void wrong_arguments_are_refused(void **state)
{
    CUipcEventHandle handle, nothing;
    CUevent event = make_shared(&handle), plain, opened;

    (void)state;
    memset(&nothing, 0, sizeof nothing);
    ok(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    gives(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&opened, CU_EVENT_INTERPROCESS)); /* without DISABLE_TIMING */
    gives(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(NULL, event));
    assert_int_not_equal(cuIpcGetEventHandle(&handle, plain), CUDA_SUCCESS);
    gives(CUDA_ERROR_INVALID_VALUE, cuIpcOpenEventHandle(NULL, handle));
    assert_int_not_equal(cuIpcOpenEventHandle(&opened, handle), CUDA_SUCCESS); /* of this process itself */
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&handle, plain));
        gives(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&handle, MADE_UP(CUevent)));
        gives(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenEventHandle(&opened, nothing));
        gives(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&opened, handle));
    }
    ok(cuEventDestroy(plain));
    ok(cuEventDestroy(event));
}

/* When a process dies, nobody waits for its events for ever, and its handles become invalid. The manual does not specify this case, so
 * NVIDIA's driver may differ. */
static void death_ends_waits(void **state)
{
    CUipcEventHandle handle = {0};
    CUevent opened, again;
    CUstream stream;

    (void)state;
    ok(tell(&peers[1], SHARE, &handle));
    ok(cuIpcOpenEventHandle(&opened, handle));
    ok(tell(&peers[1], RECORD_OWN, NULL));
    if (on_cuttle()) {
        ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        ok(cuStreamWaitEvent(stream, opened, 0));
        gives(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
        kill(peers[1].pid, SIGKILL);
        waitpid(peers[1].pid, NULL, 0);
        ok(cuStreamSynchronize(stream));
        ok(cuEventSynchronize(opened));
        gives(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenEventHandle(&again, handle));
        ok(cuStreamDestroy(stream));
    } else {
        ok(tell(&peers[1], OPEN_GATE, NULL));
        ok(cuEventSynchronize(opened));
    }
    ok(cuEventDestroy(opened));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_see_our_records),      cmocka_unit_test(we_see_records_of_others), cmocka_unit_test(records_alternate),
        cmocka_unit_test(wrong_arguments_are_refused), cmocka_unit_test(death_ends_waits),
    };
    int failed;

    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < 2; i++)
        make_peer(&peers[i]);
    failed = cmocka_run_group_tests(tests, with_context, without_context);
    for (size_t i = 0; i < 2; i++)
        close(peers[i].socket);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Opening memory of another process while processes of the same user connect to the owner and do all that they should not. They know the
 * protocol (core/ipc/share_socket.h) and find the socket in /proc/net/unix. Four of them have 1,000 idle connections, which they make again when
 * the owner closes them. An open beside them takes less than LIMIT_MS, and so does an allocation of the owner. The best of some counts, since other
 * programs may keep the processors busy; the median is printed, too. */
#include "peer.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <time.h>

#define LIMIT_MS 100.0
#define TRIES 20
#define START_MS 30000
#define BYTES ((size_t)1 << 20)

#define IDLE_PROCESSES 4
#define IDLE_EACH 250 /* connections of each of them */
#define IDLE_PAUSE_MS 500
#define COUNTS_FD 21 /* in hostile processes: a file in memory, in which each counts */

enum order { OPEN_AND_CLOSE };

/* ---- a hostile process ---- */

struct request {
    char magic[8];
    uint64_t id, part;
};

/* For each hostile process: the connections that it has open, including those that wait for the owner, and all that it ever made. */
struct count {
    _Atomic uint32_t open, made;
};
static struct count *counts, *own_count;

static struct sockaddr_un address;
static socklen_t address_bytes;
static struct request proper; /* a request that is answered */

static void find_socket(long owner)
{
    char line[512], wanted[64];
    FILE *list = fopen("/proc/net/unix", "r");
    const char *name;

    snprintf(wanted, sizeof wanted, "@cuttle-%ld-", owner);
    while (list && !address_bytes && fgets(line, sizeof line, list)) {
        if (!(name = strstr(line, wanted)))
            continue;
        address.sun_family = AF_UNIX;
        memcpy(address.sun_path + 1, name + 1, strcspn(name, "\n") - 1);
        address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strcspn(name, "\n"));
    }
    if (!list || !address_bytes)
        exit(4);
    fclose(list);
}

static int connect_to_owner(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    while (fd >= 0 && connect(fd, (const struct sockaddr *)&address, address_bytes) != 0)
        usleep(1000);
    return fd;
}

/* Returns when the owner has closed the connection. */
static void send_for_ever(const void *message, size_t size, bool reads)
{
    char bytes[256];
    int fd = connect_to_owner();

    while (send(fd, message, size, MSG_NOSIGNAL) == (ssize_t)size) {
        if (reads && recv(fd, bytes, sizeof bytes, 0) <= 0)
            break;
        usleep(reads ? 50 : 0);
    }
    close(fd);
}

static void read_nothing(void)
{
    send_for_ever(&proper, sizeof proper, false);
}

static void send_garbage(void)
{
    struct request garbage;

    memset(&garbage, 0xa5, sizeof garbage);
    send_for_ever(&garbage, sizeof garbage, false);
}

static void send_halves(void)
{
    send_for_ever(&proper, sizeof proper / 2, false);
}

static void send_too_much(void)
{
    static char much[65536];

    memcpy(much, &proper, sizeof proper);
    send_for_ever(much, sizeof much, false);
}

static void send_nothing(void)
{
    send_for_ever("", 0, false);
}

static void ask_without_end(void)
{
    send_for_ever(&proper, sizeof proper, true);
}

static void ask_for_what_is_not_there(void)
{
    struct request request = proper;

    request.part = UINT64_MAX;
    request.id = ~request.id;
    send_for_ever(&request, sizeof request, true);
}

static void come_and_go(void)
{
    close(connect_to_owner());
}

static void ask_and_go(void)
{
    int fd = connect_to_owner();

    (void)!send(fd, &proper, sizeof proper, MSG_NOSIGNAL);
    close(fd);
}

static void ask_and_do_not_listen(void)
{
    int fd = connect_to_owner();

    shutdown(fd, SHUT_RD);
    (void)!send(fd, &proper, sizeof proper, MSG_NOSIGNAL);
    usleep(1000);
    close(fd);
}

/* Keeps asking without reading on as many connections as the owner lets it have. */
static void read_nothing_on_many(void)
{
    int fds[32];

    for (int i = 0; i < 32; i++)
        fds[i] = connect_to_owner();
    for (int round = 0; round < 100; round++)
        for (int i = 0; i < 32; i++)
            (void)!send(fds[i], &proper, sizeof proper, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (int i = 0; i < 32; i++)
        close(fds[i]);
}

/* For the process's own files, too. */
static void allow_files(rlim_t wanted)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= wanted ? wanted : limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Whether the owner has closed the connection. */
static bool is_closed(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Connections that nothing is ever sent through. Those that the owner closes are made again a while later. */
static void be_idle(void)
{
    int fds[IDLE_EACH];

    allow_files(IDLE_EACH + 64);
    for (int i = 0; i < IDLE_EACH; i++)
        fds[i] = -1;
    for (;;) {
        uint32_t open = 0;

        for (int i = 0; i < IDLE_EACH; i++) {
            if (fds[i] >= 0 && is_closed(fds[i])) {
                close(fds[i]);
                fds[i] = -1;
            }
            if (fds[i] < 0 && (fds[i] = connect_to_owner()) >= 0)
                atomic_fetch_add(&own_count->made, 1);
            open += fds[i] >= 0;
            atomic_store(&own_count->open, open > atomic_load(&own_count->open) ? open : atomic_load(&own_count->open));
        }
        atomic_store(&own_count->open, open);
        usleep(IDLE_PAUSE_MS * 1000);
    }
}

static void (*const hostile[])(void) = {
    read_nothing, send_garbage,
    send_halves,  send_too_much,
    send_nothing, ask_without_end,
    come_and_go,  ask_and_go,
    be_idle,      ask_for_what_is_not_there,
    be_idle,      ask_and_do_not_listen,
    be_idle,      read_nothing_on_many,
    be_idle,
};
#define N_HOSTILE (sizeof hostile / sizeof *hostile)

/* Arguments: the owner's process, the index of what to do, the handle in hexadecimal digits. */
static int be_hostile(char **arguments)
{
    struct {
        char magic[8];
        uint64_t process;
        int32_t pid, kind;
        uint64_t id;
    } name;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    counts = mmap(NULL, N_HOSTILE * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, COUNTS_FD, 0);
    if (counts == MAP_FAILED)
        return 4;
    own_count = &counts[atol(arguments[1])];
    for (size_t i = 0; i < sizeof name; i++) {
        unsigned byte;

        if (sscanf(arguments[2] + 2 * i, "%2x", &byte) != 1)
            return 4;
        ((unsigned char *)&name)[i] = (unsigned char)byte;
    }
    memcpy(proper.magic, name.magic, sizeof proper.magic);
    proper.id = name.id;
    find_socket(atol(arguments[0]));
    atomic_store(&own_count->made, 1); /* it has begun */
    for (;;) {
        hostile[atol(arguments[1])]();
        usleep(200);
    }
}

/* ---- the other process ---- */

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* numbers[0]: the microseconds that opening took; numbers[1]: the first word. */
static CUresult obey(struct peer_message *message)
{
    const double start = now_ms();
    CUdeviceptr pointer = 0;
    CUipcMemHandle handle;
    CUresult r;

    memcpy(&handle, message->bytes, sizeof handle);
    r = cuIpcOpenMemHandle(&pointer, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    message->numbers[0] = (uint64_t)((now_ms() - start) * 1000);
    if (r != CUDA_SUCCESS)
        return r;
    message->numbers[1] = word_at(pointer);
    return cuIpcCloseMemHandle(pointer);
}

/* ---- this process, which owns the memory ---- */

static struct peer peer;
static pid_t pids[N_HOSTILE];

static uint32_t count_idle(void)
{
    uint32_t open = 0;

    for (size_t i = 0; i < N_HOSTILE; i++)
        open += hostile[i] == be_idle ? atomic_load(&counts[i].open) : 0;
    return open;
}

static uint32_t count_begun(void)
{
    uint32_t begun = 0;

    for (size_t i = 0; i < N_HOSTILE; i++)
        begun += hostile[i] != be_idle && atomic_load(&counts[i].made) > 0;
    return begun;
}

static int make_counts(void)
{
    const int fd = memfd_create("counts", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, N_HOSTILE * sizeof *counts), 0);
    counts = mmap(NULL, N_HOSTILE * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(counts, MAP_FAILED);
    return fd;
}

static void start_hostile(const CUipcMemHandle *handle)
{
    char owner[16], index[16], digits[2 * sizeof *handle + 1];
    posix_spawn_file_actions_t actions;
    const int fd = make_counts();

    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, fd, COUNTS_FD), 0);
    snprintf(owner, sizeof owner, "%ld", (long)getpid());
    for (size_t i = 0; i < sizeof *handle; i++)
        snprintf(digits + 2 * i, 3, "%02x", (unsigned)((const unsigned char *)handle)[i]);
    for (size_t i = 0; i < N_HOSTILE; i++) {
        char *arguments[] = {"/proc/self/exe", "hostile", owner, index, digits, NULL};

        snprintf(index, sizeof index, "%zu", i);
        assert_int_equal(posix_spawn(&pids[i], "/proc/self/exe", &actions, NULL, arguments, environ), 0);
    }
    posix_spawn_file_actions_destroy(&actions);
    close(fd);
    for (unsigned ms = 0; ms < START_MS && (count_idle() < IDLE_PROCESSES * IDLE_EACH || count_begun() < N_HOSTILE - IDLE_PROCESSES); ms++)
        usleep(1000);
    assert_int_equal(count_idle(), IDLE_PROCESSES * IDLE_EACH);
    assert_int_equal(count_begun(), N_HOSTILE - IDLE_PROCESSES);
    for (size_t i = 0; i < N_HOSTILE; i++)
        assert_int_equal(waitpid(pids[i], NULL, WNOHANG), 0); /* all of them run */
}

static void end_hostile(void)
{
    for (size_t i = 0; i < N_HOSTILE; i++)
        kill(pids[i], SIGKILL);
    for (size_t i = 0; i < N_HOSTILE; i++)
        waitpid(pids[i], NULL, 0);
}

static double allocate_and_share(CUipcMemHandle *handle, CUdeviceptr *pointer)
{
    const double start = now_ms();

    ok(cuMemAlloc(pointer, BYTES));
    ok(cuIpcGetMemHandle(handle, *pointer));
    return now_ms() - start;
}

struct times {
    double open_ms[TRIES], share_ms[TRIES];
};

static void open_handles(struct times *out)
{
    for (unsigned i = 0; i < TRIES; i++) {
        struct peer_message message = {.fd = -1};
        CUipcMemHandle handle;
        CUdeviceptr pointer;

        out->share_ms[i] = allocate_and_share(&handle, &pointer);
        ok(cuMemsetD32(pointer, 1000 + i, BYTES / 4));
        ok(cuCtxSynchronize());
        memcpy(message.bytes, &handle, sizeof handle);
        ok(peer_tell(&peer, OPEN_AND_CLOSE, &message));
        assert_int_equal(message.numbers[1], 1000 + i);
        out->open_ms[i] = (double)message.numbers[0] / 1000;
        ok(cuMemFree(pointer));
    }
}

static int compare(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

/* The middle of the times, which are sorted afterwards. */
static double median(double *ms)
{
    qsort(ms, TRIES, sizeof *ms, compare);
    return ms[TRIES / 2];
}

/* Files that this process has open. */
static unsigned count_files(void)
{
    struct rlimit limit;
    unsigned count = 0;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (rlim_t fd = 0; fd < limit.rlim_cur && fd < 65536; fd++)
        count += fcntl((int)fd, F_GETFD) != -1;
    return count;
}

static void nobody_waits_for_them(void **state)
{
    static struct times times;
    double open_ms, share_ms;
    CUipcMemHandle handle;
    CUdeviceptr pointer;
    uint32_t idle;
    unsigned files;

    (void)state;
    allocate_and_share(&handle, &pointer);
    files = count_files();
    start_hostile(&handle);
    open_handles(&times);
    idle = count_idle();
    open_ms = median(times.open_ms);
    share_ms = median(times.share_ms);
    print_message(
        "beside %u idle connections and %u hostile processes an open takes %.1f ms (%.1f to %.1f), an allocation %.1f ms (%.1f to "
        "%.1f); %u more files\n",
        idle, count_begun(), open_ms, times.open_ms[0], times.open_ms[TRIES - 1], share_ms, times.share_ms[0], times.share_ms[TRIES - 1],
        count_files() - files);
    assert_in_range(count_files(), 0, files + 100);
    end_hostile();
    ok(cuMemFree(pointer));
    assert_true(times.open_ms[0] < LIMIT_MS);
    assert_true(times.share_ms[0] < LIMIT_MS);
}

static bool is_there(void)
{
    CUipcMemHandle handle;
    CUdeviceptr pointer;
    CUresult r;

    ok(cuMemAlloc(&pointer, BYTES));
    r = cuIpcGetMemHandle(&handle, pointer);
    ok(cuMemFree(pointer));
    return on_cuttle() && r == CUDA_SUCCESS;
}

static int start(void **state)
{
    return peer_start_group(state, &peer, is_there, "the device shares no memory with other processes, or by other means");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_waits_for_them)};

    if (argc > 1 && strcmp(argv[1], "peer") == 0)
        return peer_run(obey);
    if (argc > 4 && strcmp(argv[1], "hostile") == 0)
        return be_hostile(argv + 2);
    return cmocka_run_group_tests(tests, start, without_context);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Memory handles as file descriptors between processes: the test starts a second instance of itself, and passes descriptors through a socket. */
#include "../api/memory/virtual_memory.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CHILD_SOCKET 20
#define GRANULES 2

extern char **environ;

/* ---- descriptors through a socket ---- */

static int send_descriptor(int socket, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    char byte = 'd';
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};

    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

static int receive_descriptor(int socket)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char byte;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    struct cmsghdr *header;
    int fd;

    if (recvmsg(socket, &message, 0) != 1 || !(header = CMSG_FIRSTHDR(&message)) || header->cmsg_type != SCM_RIGHTS)
        return -1;
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

/* ---- memory ---- */

static CUmemGenericAllocationHandle create_shared(void)
{
    CUmemAllocationProp properties = vm_properties();
    CUmemGenericAllocationHandle handle = 0;

    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    ok(cuMemCreate(&handle, GRANULES * vm_granule(), &properties, 0));
    return handle;
}

static int export_handle(CUmemGenericAllocationHandle handle)
{
    int fd = -1;

    ok(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_true(fd >= 0);
    return fd;
}

static CUmemGenericAllocationHandle import_handle(int fd)
{
    CUmemGenericAllocationHandle handle = 0;

    ok(cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    return handle;
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle)
{
    size_t size = GRANULES * vm_granule();
    CUdeviceptr start;

    ok(cuMemAddressReserve(&start, size, 0, 0, 0));
    ok(cuMemMap(start, size, 0, handle, 0));
    ok(vm_access(start, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    return start;
}

static void unmap(CUdeviceptr start)
{
    size_t size = GRANULES * vm_granule();

    ok(cuMemUnmap(start, size));
    ok(cuMemAddressFree(start, size));
}

static void fill(CUdeviceptr start, uint32_t value)
{
    ok(cuMemsetD32(start, value, GRANULES * vm_granule() / 4));
    ok(cuCtxSynchronize());
}

static void check(CUdeviceptr start, uint32_t value)
{
    size_t size = GRANULES * vm_granule();
    uint32_t *words = malloc(size);

    ok(cuMemcpyDtoH(words, start, size));
    for (size_t i = 0; i < size / 4; i++)
        assert_int_equal(words[i], value);
    free(words);
}

/* ---- tests ---- */

static bool is_there(void)
{
    return vm_is_there() && seeds_attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 1;
}

static void within_one_process(void **state)
{
    CUmemGenericAllocationHandle handle, second;
    CUdeviceptr start, other;
    CUmemAllocationProp properties;
    int fd;

    (void)state;
    if (!is_there())
        skip();
    handle = create_shared();
    fd = export_handle(handle);
    second = import_handle(fd);
    close(fd);
    start = map(handle);
    other = map(second);
    fill(start, 0x600d);
    check(other, 0x600d);
    ok(cuMemGetAllocationPropertiesFromHandle(&properties, second));
    assert_int_equal(properties.type, CU_MEM_ALLOCATION_TYPE_PINNED);
    assert_int_equal(properties.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(properties.requestedHandleTypes, CU_MEM_HANDLE_TYPE_NONE); /* it cannot be exported again */
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, second, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    unmap(start);
    ok(cuMemRelease(handle));
    check(other, 0x600d); /* "and when all outstanding references to the handle (including it's shareable counterparts) are released" */
    unmap(other);
    ok(cuMemRelease(second));
}

static void wrong_sharing_is_refused(void **state)
{
    CUmemGenericAllocationHandle shared, own, got = 77;
    int fd = 77, file;

    (void)state;
    if (!is_there())
        skip();
    shared = create_shared();
    own = vm_create(1);
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(NULL, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, shared, CU_MEM_HANDLE_TYPE_NONE, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, shared, CU_MEM_HANDLE_TYPE_WIN32, 0));
    assert_int_equal(fd, 77);
    file = fileno(tmpfile());
    refuses(CUDA_ERROR_INVALID_VALUE,
            cuMemImportFromShareableHandle(&got, (void *)(uintptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&got, (void *)(intptr_t)-1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    fd = export_handle(shared);
    refuses(CUDA_ERROR_INVALID_VALUE,
            cuMemImportFromShareableHandle(NULL, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    refuses(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&got, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_NONE));
    assert_int_equal(got, 77);
    close(fd);
    ok(cuMemRelease(shared));
    ok(cuMemRelease(own));
}

/* The other process: checks the received memory and writes a reply into it, then creates and exports memory of its own, and exits. */
static void be_the_child(void **state)
{
    CUmemGenericAllocationHandle handle, own;
    CUdeviceptr start;
    int fd;

    (void)state;
    fd = receive_descriptor(CHILD_SOCKET);
    assert_true(fd >= 0);
    handle = import_handle(fd);
    close(fd);
    /* "Once a recipient process obtains a shareable memory handle from cuMemImportFromShareableHandle, the process must use cuMemMap to map
     * the memory into its address ranges before setting accessibility with cuMemSetAccess." */
    ok(cuMemAddressReserve(&start, vm_granule(), 0, 0, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, vm_access(start, vm_granule(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    ok(cuMemAddressFree(start, vm_granule()));
    start = map(handle);
    check(start, 0x1111);
    fill(start, 0x2222);
    seeds_step(start, SEEDS_WORDS);
    unmap(start);
    ok(cuMemRelease(handle));

    own = create_shared();
    start = map(own);
    fill(start, 0x3333);
    fd = export_handle(own);
    assert_int_equal(send_descriptor(CHILD_SOCKET, fd), 0);
    close(fd);
    unmap(start);
    ok(cuMemRelease(own));
}

static pid_t start_child(int socket)
{
    char *arguments[] = {"/proc/self/exe", "child", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;

    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, socket, CHILD_SOCKET), 0);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void between_two_processes(void **state)
{
    CUmemGenericAllocationHandle handle, theirs;
    int sockets[2], fd, status = -1;
    uint32_t words[2];
    CUdeviceptr start;
    pid_t child;

    (void)state;
    if (!is_there())
        skip();
    handle = create_shared();
    start = map(handle);
    fill(start, 0x1111);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    child = start_child(sockets[1]);
    close(sockets[1]);
    fd = export_handle(handle);
    assert_int_equal(send_descriptor(sockets[0], fd), 0);
    close(fd);
    fd = receive_descriptor(sockets[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    ok(cuMemcpyDtoH(words, start + 4 * (SEEDS_WORDS - 1), sizeof words));
    assert_int_equal(words[0], 0x2222 * 3 + 1);
    assert_int_equal(words[1], 0x2222);
    unmap(start);
    ok(cuMemRelease(handle));

    assert_true(fd >= 0); /* the descriptor keeps the memory alive, although its creator has exited */
    theirs = import_handle(fd);
    close(fd);
    start = map(theirs);
    check(start, 0x3333);
    unmap(start);
    ok(cuMemRelease(theirs));
    close(sockets[0]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest child[] = {cmocka_unit_test(be_the_child)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_one_process),
        cmocka_unit_test(wrong_sharing_is_refused),
        cmocka_unit_test(between_two_processes),
    };

    if (argc > 1 && strcmp(argv[1], "child") == 0)
        return cmocka_run_group_tests(child, with_context, without_context);
    return cmocka_run_group_tests(tests, with_context, without_context);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes: the child allocates memory with Vulkan and passes its descriptor through a socket; the parent imports it with CUDA, reads what
 * the child's shader wrote, and writes to it; the child reads that with Vulkan. */
#include "interop.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 5000u

struct message {
    uint64_t memory_bytes;
};

static void send_descriptor(int socket, const struct message *message, int fd)
{
    struct iovec data = {(void *)message, sizeof *message};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *part = CMSG_FIRSTHDR(&header);

    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(part), &fd, sizeof fd);
    expect(sendmsg(socket, &header, 0) == (ssize_t)sizeof *message);
}

static int receive_descriptor(int socket, struct message *message)
{
    struct iovec data = {message, sizeof *message};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *part;
    int fd;

    expect(recvmsg(socket, &header, 0) == (ssize_t)sizeof *message);
    part = CMSG_FIRSTHDR(&header);
    expect(part && part->cmsg_type == SCM_RIGHTS);
    memcpy(&fd, CMSG_DATA(part), sizeof fd);
    return fd;
}

int child_process(int socket, struct cuda *cuda)
{
    struct app_buffer buffer, host;
    struct app app;
    CUuuid uuid;
    char answer;
    int fd;

    ok(cuDeviceGetUuid(&uuid, cuda->device));
    app_open(&app, (const uint8_t *)uuid.bytes);
    app_buffer_create(&app, WORDS * 4, APP_SHARED, &buffer);
    app_buffer_create(&app, WORDS * 4, APP_HOST, &host);
    app_run(&app, &buffer, &buffer, &(struct app_map){WORDS, 0, 21, 4});
    fd = app_buffer_export(&app, &buffer);
    send_descriptor(socket, &(struct message){buffer.memory_bytes}, fd);
    close(fd);
    expect(read(socket, &answer, 1) == 1);
    app_run(&app, &buffer, &host, &(struct app_map){WORDS, 1, 0, 0});
    for (unsigned i = 0; i < WORDS; i++)
        expect(host.words[i] == i * 8 + 43);
    app_buffer_destroy(&app, &buffer);
    app_buffer_destroy(&app, &host);
    app_close(&app);
    cuda_close(cuda);
    return EXIT_SUCCESS;
}

static void work_with_child(int socket, struct cuda *cuda)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc;
    CUexternalMemory memory;
    struct message message;
    CUdeviceptr data;
    int fd;

    fd = receive_descriptor(socket, &message);
    desc = memory_handle(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, fd, message.memory_bytes);
    ok(cuImportExternalMemory(&memory, &desc));
    data = map_buffer(memory, 0, WORDS * 4);
    expect(cuda_count_wrong(cuda, data, WORDS, 4, 21) == 0);
    cuda_map(cuda, NULL, data, (struct app_map){WORDS, 2, 1, 0});
    ok(cuCtxSynchronize());
    expect(write(socket, "x", 1) == 1);
    ok(cuMemFree(data));
    ok(cuDestroyExternalMemory(memory));
}

int two_processes(struct cuda *cuda, const char *self)
{
    int sockets[2], status;
    char number[16];
    pid_t child;

    expect(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    snprintf(number, sizeof number, "%d", sockets[1]);
    child = fork();
    expect(child >= 0);
    if (!child) {
        execl(self, self, "child", number, (char *)NULL);
        _exit(127);
    }
    close(sockets[1]);
    work_with_child(sockets[0], cuda);
    expect(waitpid(child, &status, 0) == child);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cuda_close(cuda);
    printf("two_processes        passed\n");
    return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Vulkan and CUDA alternate, synchronized by the host, by timelines or by binary semaphores. A round is x = 3 x + 7 by the shader, then
 * x = 5 x + 11 by the kernel; in every round a CUDA kernel compares every word with the value that the host computes. */
#include "interop.h"

#include "../../api/which_driver.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define WORDS 1000u
#define ROUNDS 1000u
#define BINARY_ROUNDS 200u

struct game {
    struct app_buffer buffer;
    CUexternalMemory memory;
    CUdeviceptr data, wrong;
    CUstream stream;
    VkCommandBuffer turn;        /* the shader's */
    unsigned multiplier, addend; /* every word is i * multiplier + addend */
};

static void start(struct game *game, struct app *app, struct cuda *cuda)
{
    app_buffer_create(app, WORDS * 4, APP_SHARED, &game->buffer);
    game->memory = import_memory(app, &game->buffer);
    game->data = map_buffer(game->memory, 0, WORDS * 4);
    ok(cuStreamCreate(&game->stream, CU_STREAM_NON_BLOCKING));
    ok(cuMemAlloc(&game->wrong, 4));
    ok(cuMemsetD32(game->wrong, 0, 1));
    cuda_map(cuda, game->stream, game->data, (struct app_map){WORDS, 0, 5, 1});
    ok(cuStreamSynchronize(game->stream));
    game->multiplier = 1;
    game->addend = 5;
    game->turn = app_record(app, &game->buffer, &game->buffer, &(struct app_map){WORDS, 3, 7, 0});
}

/* The kernel and the check of a round, in stream order. */
static void cuda_turn(struct game *game, struct cuda *cuda)
{
    cuda_map(cuda, game->stream, game->data, (struct app_map){WORDS, 5, 11, 0});
    game->multiplier *= 15;
    game->addend = (game->addend * 3 + 7) * 5 + 11;
    cuda_count_wrong_async(cuda, game->stream, game->data, WORDS, game->multiplier, game->addend, game->wrong);
}

static void finish(struct game *game, struct app *app)
{
    unsigned wrong = 1;

    ok(cuStreamSynchronize(game->stream));
    app_wait_idle(app);
    ok(cuMemcpyDtoH(&wrong, game->wrong, 4));
    expect(wrong == 0);
    ok(cuStreamDestroy(game->stream));
    ok(cuMemFree(game->wrong));
    ok(cuMemFree(game->data));
    ok(cuDestroyExternalMemory(game->memory));
    app_buffer_destroy(app, &game->buffer);
}

static CUresult import_semaphore(int fd, bool timeline, CUexternalSemaphore *out)
{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc;

    memset(&desc, 0, sizeof desc);
    desc.type = timeline ? CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD : CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
    desc.handle.fd = fd;
    return cuImportExternalSemaphore(out, &desc);
}

static CUexternalSemaphore share_semaphore(struct app *app, VkSemaphore semaphore, bool timeline)
{
    CUexternalSemaphore imported;

    ok(import_semaphore(app_semaphore_export(app, semaphore), timeline, &imported));
    return imported;
}

static void cuda_wait(CUstream stream, CUexternalSemaphore semaphore, uint64_t value)
{
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params;

    memset(&params, 0, sizeof params);
    params.params.fence.value = value;
    ok(cuWaitExternalSemaphoresAsync(&semaphore, &params, 1, stream));
}

static void cuda_signal(CUstream stream, CUexternalSemaphore semaphore, uint64_t value)
{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS params;

    memset(&params, 0, sizeof params);
    params.params.fence.value = value;
    ok(cuSignalExternalSemaphoresAsync(&semaphore, &params, 1, stream));
}

int ping_pong_host(struct app *app, struct cuda *cuda)
{
    struct game game;

    start(&game, app, cuda);
    for (unsigned round = 0; round < ROUNDS; round++) {
        app_submit(app, game.turn, VK_NULL_HANDLE, 0, VK_NULL_HANDLE, 0);
        app_wait_idle(app);
        cuda_turn(&game, cuda);
        ok(cuStreamSynchronize(game.stream));
    }
    finish(&game, app);
    return PASSED;
}

/* The host does not wait until everything is enqueued; the last rounds are enqueued in CUDA first. */
int ping_pong_timeline(struct app *app, struct cuda *cuda)
{
    CUexternalSemaphore imported;
    VkSemaphore semaphore;
    struct game game;

    if (!app->has_timelines)
        return LEFT_OUT;
    start(&game, app, cuda);
    semaphore = app_semaphore_create(app, true);
    imported = share_semaphore(app, semaphore, true);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        bool cuda_first = round > ROUNDS - 10;

        if (!cuda_first)
            app_submit(app, game.turn, semaphore, 2 * round, semaphore, 2 * round + 1);
        cuda_wait(game.stream, imported, 2 * round + 1);
        cuda_turn(&game, cuda);
        cuda_signal(game.stream, imported, 2 * round + 2);
        if (cuda_first)
            app_submit(app, game.turn, semaphore, 2 * round, semaphore, 2 * round + 1);
    }
    finish(&game, app);
    ok(cuDestroyExternalSemaphore(imported));
    vkDestroySemaphore(app->device, semaphore, NULL);
    return PASSED;
}

int ping_pong_binary(struct app *app, struct cuda *cuda)
{
    CUexternalSemaphore imported[2];
    VkSemaphore semaphores[2];
    struct game game;

    if (!app->has_semaphores)
        return LEFT_OUT;
    start(&game, app, cuda);
    for (int i = 0; i < 2; i++) {
        semaphores[i] = app_semaphore_create(app, false);
        imported[i] = share_semaphore(app, semaphores[i], false);
    }
    for (unsigned round = 0; round < BINARY_ROUNDS; round++) {
        app_submit(app, game.turn, round ? semaphores[1] : VK_NULL_HANDLE, 0, semaphores[0], 0);
        cuda_wait(game.stream, imported[0], 0);
        cuda_turn(&game, cuda);
        if (round + 1 < BINARY_ROUNDS)
            cuda_signal(game.stream, imported[1], 0);
    }
    finish(&game, app);
    for (int i = 0; i < 2; i++) {
        ok(cuDestroyExternalSemaphore(imported[i]));
        vkDestroySemaphore(app->device, semaphores[i], NULL);
    }
    return PASSED;
}

/* Several semaphores: the kernel of one stream starts after two timelines are signalled, by another stream and by the host. */
int semaphore_arrays(struct app *app, struct cuda *cuda)
{
    const uint64_t values[2] = {3, 8};
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signals[2];
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS waits[2];
    CUexternalSemaphore imported[2];
    VkSemaphore semaphores[2];
    struct game game;
    CUstream other;

    if (!app->has_timelines)
        return LEFT_OUT;
    start(&game, app, cuda);
    ok(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    memset(signals, 0, sizeof signals);
    memset(waits, 0, sizeof waits);
    for (int i = 0; i < 2; i++) {
        semaphores[i] = app_semaphore_create(app, true);
        imported[i] = share_semaphore(app, semaphores[i], true);
        waits[i].params.fence.value = signals[i].params.fence.value = values[i];
    }
    ok(cuWaitExternalSemaphoresAsync(imported, waits, 2, game.stream)); /* before the signals */
    cuda_map(cuda, game.stream, game.data, (struct app_map){WORDS, 2, 0, 0});
    usleep(20000);
    gives(CUDA_ERROR_NOT_READY, cuStreamQuery(game.stream));
    ok(cuSignalExternalSemaphoresAsync(imported, signals, 2, other)); /* the awaited signal must not be queued after the wait */
    ok(cuStreamSynchronize(game.stream));
    for (int i = 0; i < 2; i++) {
        uint64_t value = 0;

        vkGetSemaphoreCounterValue(app->device, semaphores[i], &value);
        expect(value == values[i]);
    }
    expect(cuda_count_wrong(cuda, game.data, WORDS, 2, 10) == 0);
    if (on_cuttle()) /* timeline values only increase */
        gives(CUDA_ERROR_INVALID_VALUE, cuSignalExternalSemaphoresAsync(imported, signals, 2, other));
    ok(cuWaitExternalSemaphoresAsync(imported, waits, 2, other)); /* again, since timelines keep their values */
    ok(cuStreamSynchronize(other));
    finish(&game, app);
    ok(cuStreamDestroy(other));
    for (int i = 0; i < 2; i++) {
        ok(cuDestroyExternalSemaphore(imported[i]));
        vkDestroySemaphore(app->device, semaphores[i], NULL);
    }
    return PASSED;
}

static CUresult import_as(unsigned type, unsigned flags)
{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc;
    CUexternalSemaphore semaphore;

    memset(&desc, 0, sizeof desc);
    desc.type = type;
    desc.handle.fd = -1;
    desc.flags = flags;
    return cuImportExternalSemaphore(&semaphore, &desc);
}

void semaphore_facts(void)
{
    for (unsigned type = 0; type <= 11; type++) {
        printf("import of semaphore type %u: %d\n", type, (int)import_as(type, 0));
        fflush(stdout);
    }
    printf("import of a semaphore with flags 1: %d\n", (int)import_as(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, 1));
}

/* As on NVIDIA's driver. */
static void bad_types(void)
{
    gives(CUDA_ERROR_INVALID_VALUE, import_as(0, 0));
    gives(CUDA_ERROR_INVALID_VALUE, import_as(11, 0));
    for (unsigned type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32; type <= CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT;
         type++)
        gives(CUDA_ERROR_NOT_SUPPORTED, import_as(type, 0));
    gives(CUDA_ERROR_NOT_SUPPORTED, import_as(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32, 0));
}

static void bad_imports(const struct app *app)
{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc;
    CUexternalSemaphore semaphore;

    memset(&desc, 0, sizeof desc);
    desc.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
    gives(CUDA_ERROR_INVALID_VALUE, cuImportExternalSemaphore(NULL, &desc));
    gives(CUDA_ERROR_INVALID_VALUE, cuImportExternalSemaphore(&semaphore, NULL));
    if (app->has_semaphores) {
        gives(CUDA_ERROR_OPERATING_SYSTEM, import_as(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, 0));
        gives(CUDA_ERROR_INVALID_VALUE, import_as(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, 1));
    } else { /* lavapipe: the descriptor is not checked */
        gives(CUDA_ERROR_NOT_SUPPORTED, import_as(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, 0));
        gives(CUDA_ERROR_NOT_SUPPORTED, import_as(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, 0));
    }
}

int semaphore_errors(struct app *app, struct cuda *cuda)
{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal;
    CUexternalSemaphore none = NULL;
    int timelines;

    ok(cuDeviceGetAttribute(&timelines, CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, cuda->device));
    expect(timelines || !on_cuttle() || !app->has_timelines);
    expect(!timelines || app->has_timelines);
    bad_types();
    if (!on_cuttle())
        return PASSED;
    bad_imports(app);
    memset(&signal, 0, sizeof signal);
    gives(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalSemaphore(NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalSemaphore((CUexternalSemaphore)cuda->module));
    gives(CUDA_ERROR_INVALID_HANDLE, cuSignalExternalSemaphoresAsync(&none, &signal, 1, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuSignalExternalSemaphoresAsync(NULL, &signal, 1, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuWaitExternalSemaphoresAsync(&none, NULL, 1, NULL));
    return PASSED;
}

/* The driver owns the descriptor on success, and only then; after the semaphore or its context is destroyed, no descriptor leaks. */
int semaphore_ownership(struct app *app, struct cuda *cuda)
{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal;
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC desc;
    CUexternalSemaphore imported;
    VkSemaphore semaphore;
    unsigned before;
    CUcontext context;

    if (!app->has_semaphores || !on_cuttle())
        return LEFT_OUT;
    semaphore = app_semaphore_create(app, false);
    imported = share_semaphore(app, semaphore, false); /* once before counting, for descriptors that a driver keeps */
    ok(cuDestroyExternalSemaphore(imported));
    before = count_descriptors();
    memset(&signal, 0, sizeof signal);
    memset(&desc, 0, sizeof desc);
    desc.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
    desc.handle.fd = app_semaphore_export(app, semaphore);
    desc.flags = 1;
    gives(CUDA_ERROR_INVALID_VALUE, cuImportExternalSemaphore(&imported, &desc));
    expect(fcntl(desc.handle.fd, F_GETFD) >= 0);
    desc.flags = 0;
    ok(cuImportExternalSemaphore(&imported, &desc));
    ok(cuDestroyExternalSemaphore(imported));
    gives(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalSemaphore(imported));
    gives(CUDA_ERROR_INVALID_HANDLE, cuSignalExternalSemaphoresAsync(&imported, &signal, 1, NULL));
    expect(count_descriptors() == before);
    ok(cuCtxCreate(&context, NULL, 0, cuda->device));
    imported = share_semaphore(app, semaphore, false);
    ok(cuCtxDestroy(context));
    gives(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalSemaphore(imported));
    expect(count_descriptors() == before);
    ok(cuCtxSetCurrent(cuda->context));
    vkDestroySemaphore(app->device, semaphore, NULL);
    return PASSED;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: two ranks in one process, on two devices. Each operation is called for both ranks in a group. The numbers are small integers, so sums
 * are exact. */
#include "library_test.h"

#include <nccl.h>

enum { RANKS = 2, COUNT = 5000 };

static ncclComm_t comms[RANKS];
static cudaStream_t streams[RANKS];
static float *device_in[RANKS], *device_out[RANKS];
static float in[RANKS][RANKS * COUNT], out[RANKS][RANKS * COUNT];

static int begin(void **state)
{
    const int devices[RANKS] = {0, 1};
    int n_devices = 0;
    uint64_t seed = 1;

    (void)state;
    if (cudaGetDeviceCount(&n_devices) || n_devices < RANKS || ncclCommInitAll(comms, RANKS, devices))
        return -1;
    for (int rank = 0; rank < RANKS; rank++) {
        for (int i = 0; i < RANKS * COUNT; i++)
            in[rank][i] = (float)next_small(&seed, 1000);
        if (cudaSetDevice(rank) || cudaStreamCreate(&streams[rank]) || cudaMalloc((void **)&device_in[rank], sizeof in[rank]) ||
            cudaMalloc((void **)&device_out[rank], sizeof out[rank]))
            return -1;
    }
    return 0;
}

static int end(void **state)
{
    int failed = 0;

    (void)state;
    for (int rank = 0; rank < RANKS; rank++)
        failed |= cudaSetDevice(rank) || cudaStreamDestroy(streams[rank]) || cudaFree(device_in[rank]) || cudaFree(device_out[rank]) ||
                  ncclCommDestroy(comms[rank]);
    return failed ? -1 : 0;
}

/* Copies the inputs, and fills the outputs with NaN. */
static int prepare(void **state)
{
    (void)state;
    for (int rank = 0; rank < RANKS; rank++) {
        ok(cudaSetDevice(rank));
        ok(cudaMemcpy(device_in[rank], in[rank], sizeof in[rank], cudaMemcpyHostToDevice));
        ok(cudaMemset(device_out[rank], 0xff, sizeof out[rank]));
    }
    return 0;
}

/* Waits for both ranks, and fetches the outputs. */
static void finish(void)
{
    for (int rank = 0; rank < RANKS; rank++) {
        ok(cudaSetDevice(rank));
        ok(cudaStreamSynchronize(streams[rank]));
        ok(cudaMemcpy(out[rank], device_out[rank], sizeof out[rank], cudaMemcpyDeviceToHost));
    }
}

/* Compares `count` outputs of a rank with what `want` says; the rest is still NaN. */
static void expect(int rank, int count, float (*want)(int rank, int i))
{
    for (int i = 0; i < RANKS * COUNT; i++)
        if (i < count ? out[rank][i] != want(rank, i) : !isnan(out[rank][i])) {
            print_error("rank %d, element %d: %g, not %g\n", rank, i, (double)out[rank][i],
                        i < count ? (double)want(rank, i) : (double)NAN);
            fail();
        }
}

static float sum_of_both(int rank, int i)
{
    (void)rank;
    return in[0][i] + in[1][i];
}

static float part_of_sum(int rank, int i)
{
    return in[0][rank * COUNT + i] + in[1][rank * COUNT + i];
}

static float first_of_each(int rank, int i)
{
    (void)rank;
    return in[i / COUNT][i % COUNT];
}

static float of_the_second(int rank, int i)
{
    (void)rank;
    return in[1][i];
}

static void test_all_reduce(void **state)
{
    (void)state;
    ok(ncclGroupStart());
    for (int rank = 0; rank < RANKS; rank++)
        ok(ncclAllReduce(device_in[rank], device_out[rank], RANKS * COUNT, ncclFloat, ncclSum, comms[rank], streams[rank]));
    ok(ncclGroupEnd());
    finish();
    for (int rank = 0; rank < RANKS; rank++)
        expect(rank, RANKS * COUNT, sum_of_both);
}

static void test_reduce_scatter(void **state)
{
    (void)state;
    ok(ncclGroupStart());
    for (int rank = 0; rank < RANKS; rank++)
        ok(ncclReduceScatter(device_in[rank], device_out[rank], COUNT, ncclFloat, ncclSum, comms[rank], streams[rank]));
    ok(ncclGroupEnd());
    finish();
    for (int rank = 0; rank < RANKS; rank++)
        expect(rank, COUNT, part_of_sum);
}

static void test_all_gather(void **state)
{
    (void)state;
    ok(ncclGroupStart());
    for (int rank = 0; rank < RANKS; rank++)
        ok(ncclAllGather(device_in[rank], device_out[rank], COUNT, ncclFloat, comms[rank], streams[rank]));
    ok(ncclGroupEnd());
    finish();
    for (int rank = 0; rank < RANKS; rank++)
        expect(rank, RANKS * COUNT, first_of_each);
}

static void test_broadcast(void **state)
{
    (void)state;
    ok(ncclGroupStart());
    for (int rank = 0; rank < RANKS; rank++)
        ok(ncclBroadcast(device_in[rank], device_out[rank], COUNT, ncclFloat, 1, comms[rank], streams[rank]));
    ok(ncclGroupEnd());
    finish();
    for (int rank = 0; rank < RANKS; rank++)
        expect(rank, COUNT, of_the_second);
}

static void test_reduce(void **state)
{
    (void)state;
    ok(ncclGroupStart());
    for (int rank = 0; rank < RANKS; rank++)
        ok(ncclReduce(device_in[rank], device_out[rank], COUNT, ncclFloat, ncclSum, 1, comms[rank], streams[rank]));
    ok(ncclGroupEnd());
    finish();
    expect(0, 0, sum_of_both);
    expect(1, COUNT, sum_of_both);
}

/* Rank 1 sends, rank 0 receives. */
static void test_send(void **state)
{
    (void)state;
    ok(ncclGroupStart());
    ok(ncclSend(device_in[1], COUNT, ncclFloat, 0, comms[1], streams[1]));
    ok(ncclRecv(device_out[0], COUNT, ncclFloat, 1, comms[0], streams[0]));
    ok(ncclGroupEnd());
    finish();
    expect(0, COUNT, of_the_second);
    expect(1, 0, of_the_second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_all_reduce, prepare), cmocka_unit_test_setup(test_reduce_scatter, prepare),
        cmocka_unit_test_setup(test_all_gather, prepare), cmocka_unit_test_setup(test_broadcast, prepare),
        cmocka_unit_test_setup(test_reduce, prepare),     cmocka_unit_test_setup(test_send, prepare),
    };

    return cmocka_run_group_tests(tests, begin, end);
}

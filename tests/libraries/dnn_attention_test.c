/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN: multi-head attention of the legacy API, with projections of queries, keys, values and results, and biases. */
#include "dnn.h"

enum { HEADS = 2, BATCH = 2, N_QUERIES = 5, N_KEYS = 7 };
enum { QUERY_SIZE = 6, KEY_SIZE = 8, VALUE_SIZE = 10, PROJECTED = 4, VALUE_PROJECTED = 3, OUT_SIZE = 9 };

static const double scale = 0.5;

/* Sequences: BATCH of them, of `length` vectors each. */
struct sequences {
    cudnnSeqDataDescriptor_t descriptor;
    int length, size;
    float value[BATCH * N_KEYS * QUERY_SIZE * VALUE_SIZE];
    void *device;
};

static struct sequences queries, keys, values, results;

static void sequences_init(struct sequences *s, int length, int size)
{
    static const cudnnSeqDataAxis_t order[] = {CUDNN_SEQDATA_BATCH_DIM, CUDNN_SEQDATA_BEAM_DIM, CUDNN_SEQDATA_TIME_DIM,
                                               CUDNN_SEQDATA_VECT_DIM};
    const int dims[] = {[CUDNN_SEQDATA_TIME_DIM] = length,
                        [CUDNN_SEQDATA_BATCH_DIM] = BATCH,
                        [CUDNN_SEQDATA_BEAM_DIM] = 1,
                        [CUDNN_SEQDATA_VECT_DIM] = size};
    int lengths[BATCH];
    uint64_t seed = (uint64_t)size;

    s->length = length;
    s->size = size;
    for (int i = 0; i < BATCH; i++)
        lengths[i] = length;
    for (int i = 0; i < BATCH * length * size; i++)
        s->value[i] = (float)next_small(&seed, 8) / 8;
    ok(cudnnCreateSeqDataDescriptor(&s->descriptor));
    ok(cudnnSetSeqDataDescriptor(s->descriptor, CUDNN_DATA_FLOAT, CUDNN_SEQDATA_DIM_COUNT, dims, order, BATCH, lengths, NULL));
    s->device = device_copy(s->value, sizeof s->value);
}

static void sequences_finish(struct sequences *s)
{
    ok(cudnnDestroySeqDataDescriptor(s->descriptor));
    ok(cudaFree(s->device));
}

/* ---- weights ---- */

/* A matrix for each head, and a vector of biases, as cuDNN places them in its buffer of weights. */
struct weights {
    int dims[3], strides[3], bias_stride[2];
    const float *matrix, *bias;
};

static struct weights weights[4]; /* by cudnnMultiHeadAttnWeightKind_t */

/* Reads where a part of the buffer is. Addresses in it are the host's: cuDNN only adds offsets to what it is given. */
static const float *place(cudnnAttnDescriptor_t attention, cudnnMultiHeadAttnWeightKind_t kind, float *buffer, size_t bytes, int *dims,
                          int *strides)
{
    cudnnTensorDescriptor_t descriptor;
    cudnnDataType_t type;
    void *address = NULL;
    int rank;

    ok(cudnnCreateTensorDescriptor(&descriptor));
    ok(cudnnGetMultiHeadAttnWeights(handle, attention, kind, bytes, buffer, descriptor, &address));
    ok(cudnnGetTensorNdDescriptor(descriptor, 3, &type, &rank, dims, strides));
    ok(cudnnDestroyTensorDescriptor(descriptor));
    assert_int_equal(rank, 3);
    return address;
}

static void find_weights(cudnnAttnDescriptor_t attention, float *buffer, size_t bytes)
{
    static const int want_dims[][3] = {{HEADS, PROJECTED, QUERY_SIZE},
                                       {HEADS, PROJECTED, KEY_SIZE},
                                       {HEADS, VALUE_PROJECTED, VALUE_SIZE},
                                       {HEADS, OUT_SIZE, VALUE_PROJECTED}};

    for (cudnnMultiHeadAttnWeightKind_t kind = CUDNN_MH_ATTN_Q_WEIGHTS; kind <= CUDNN_MH_ATTN_O_WEIGHTS; kind++) {
        struct weights *w = &weights[kind];
        int dims[3], strides[3];

        w->matrix = place(attention, kind, buffer, bytes, w->dims, w->strides);
        assert_memory_equal(w->dims, want_dims[kind], sizeof w->dims);
        w->bias = place(attention, kind + CUDNN_MH_ATTN_Q_BIASES, buffer, bytes, dims, strides);
        w->bias_stride[0] = dims[0] > 1 ? strides[0] : 0; /* the results have one bias for all heads */
        w->bias_stride[1] = strides[1];
    }
}

/* Row `row` of a head's matrix times a vector. */
static double project(cudnnMultiHeadAttnWeightKind_t kind, int head, int row, const double *vector)
{
    const struct weights *w = &weights[kind];
    double sum = 0;

    for (int i = 0; i < w->dims[2]; i++)
        sum += w->matrix[head * w->strides[0] + row * w->strides[1] + i * w->strides[2]] * vector[i];
    return sum;
}

static double bias(cudnnMultiHeadAttnWeightKind_t kind, int head, int row)
{
    return weights[kind].bias[head * weights[kind].bias_stride[0] + row * weights[kind].bias_stride[1]];
}

/* Projects one vector of a sequence for a head. */
static void projected(cudnnMultiHeadAttnWeightKind_t kind, const struct sequences *s, int batch, int time, int head, double *out)
{
    double vector[QUERY_SIZE + KEY_SIZE + VALUE_SIZE];

    for (int i = 0; i < s->size; i++)
        vector[i] = s->value[(batch * s->length + time) * s->size + i];
    for (int row = 0; row < weights[kind].dims[1]; row++)
        out[row] = project(kind, head, row, vector) + bias(kind, head, row);
}

/* ---- the test ---- */

/* The first of them see some of the keys only. */
static int keys_seen(int time)
{
    return time + 4 < N_KEYS ? time + 4 : N_KEYS;
}

/* What one query finds, of all heads together. */
static void attend(int batch, int time, double *out)
{
    for (int row = 0; row < OUT_SIZE; row++)
        out[row] = bias(CUDNN_MH_ATTN_O_WEIGHTS, 0, row);
    for (int head = 0; head < HEADS; head++) {
        double query[PROJECTED], found[VALUE_PROJECTED] = {0}, sum = 0;

        projected(CUDNN_MH_ATTN_Q_WEIGHTS, &queries, batch, time, head, query);
        for (int key_time = 0; key_time < keys_seen(time); key_time++) {
            double key[PROJECTED], value[VALUE_PROJECTED], dot = 0;

            projected(CUDNN_MH_ATTN_K_WEIGHTS, &keys, batch, key_time, head, key);
            projected(CUDNN_MH_ATTN_V_WEIGHTS, &values, batch, key_time, head, value);
            for (int i = 0; i < PROJECTED; i++)
                dot += query[i] * key[i];
            sum += exp(scale * dot);
            for (int i = 0; i < VALUE_PROJECTED; i++)
                found[i] += exp(scale * dot) * value[i];
        }
        for (int i = 0; i < VALUE_PROJECTED; i++)
            found[i] /= sum;
        for (int row = 0; row < OUT_SIZE; row++)
            out[row] += project(CUDNN_MH_ATTN_O_WEIGHTS, head, row, found);
    }
}

static int *lengths_on_device(int length)
{
    int lengths[BATCH];

    for (int i = 0; i < BATCH; i++)
        lengths[i] = length;
    return device_copy(lengths, sizeof lengths);
}

static void test_multi_head_attention(void **state)
{
    cudnnAttnDescriptor_t attention;
    int from[N_QUERIES], to[N_QUERIES], *query_lengths = lengths_on_device(N_QUERIES), *key_lengths = lengths_on_device(N_KEYS);
    size_t weight_bytes, workspace_bytes;
    uint64_t seed = 1;
    float *buffer;
    void *device_weights, *workspace;

    (void)state;
    sequences_init(&queries, N_QUERIES, QUERY_SIZE);
    sequences_init(&keys, N_KEYS, KEY_SIZE);
    sequences_init(&values, N_KEYS, VALUE_SIZE);
    sequences_init(&results, N_QUERIES, OUT_SIZE);
    ok(cudaMemset(results.device, 0xff, sizeof results.value)); /* NaN */
    ok(cudnnCreateAttnDescriptor(&attention));
    ok(cudnnSetAttnDescriptor(attention, CUDNN_ATTN_QUERYMAP_ALL_TO_ONE | CUDNN_ATTN_ENABLE_PROJ_BIASES, HEADS, scale, CUDNN_DATA_FLOAT,
                              CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, NULL, NULL, QUERY_SIZE, KEY_SIZE, VALUE_SIZE, PROJECTED, PROJECTED,
                              VALUE_PROJECTED, OUT_SIZE, N_QUERIES, N_KEYS, BATCH, 1));
    ok(cudnnGetMultiHeadAttnBuffers(handle, attention, &weight_bytes, &workspace_bytes, NULL));
    buffer = calloc(1, weight_bytes);
    assert_non_null(buffer);
    for (size_t i = 0; i < weight_bytes / sizeof *buffer; i++)
        buffer[i] = (float)next_small(&seed, 8) / 8;
    find_weights(attention, buffer, weight_bytes);
    device_weights = device_copy(buffer, weight_bytes);
    ok(cudaMalloc(&workspace, workspace_bytes + 1));
    for (int i = 0; i < N_QUERIES; i++) {
        from[i] = 0;
        to[i] = keys_seen(i);
    }
    ok(cudnnMultiHeadAttnForward(handle, attention, -1, from, to, query_lengths, key_lengths, queries.descriptor, queries.device, NULL,
                                 keys.descriptor, keys.device, values.descriptor, values.device, results.descriptor, results.device,
                                 weight_bytes, device_weights, workspace_bytes, workspace, 0, NULL));
    ok(cudaDeviceSynchronize());
    ok(cudaMemcpy(results.value, results.device, sizeof results.value, cudaMemcpyDeviceToHost));
    for (int i = 0; i < BATCH * N_QUERIES; i++) {
        double want[OUT_SIZE];

        attend(i / N_QUERIES, i % N_QUERIES, want);
        for (int row = 0; row < OUT_SIZE; row++)
            if (!(fabs(results.value[i * OUT_SIZE + row] - want[row]) <= 1e-5)) {
                print_error("query %d, element %d: %.9g, not %.9g\n", i, row, results.value[i * OUT_SIZE + row], want[row]);
                fail();
            }
    }
    ok(cudnnDestroyAttnDescriptor(attention));
    ok(cudaFree(workspace));
    ok(cudaFree(device_weights));
    ok(cudaFree(query_lengths));
    ok(cudaFree(key_lengths));
    free(buffer);
    sequences_finish(&queries);
    sequences_finish(&keys);
    sequences_finish(&values);
    sequences_finish(&results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multi_head_attention),
    };

    return cmocka_run_group_tests(tests, create, destroy);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's graph API: graphs of operations, each computed by the engine that cuDNN suggests first, with --all by each that it suggests. Engines that are compiled at run time get their
 * kernels from NVRTC, as PTX: fused element-wise operations and products, and attention. */
#include "dnn.h"

#define CHANNELS_LAST CUDNN_TENSOR_NHWC

/* ---- descriptors ---- */

static void set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
                const void *values)
{
    ok(cudnnBackendSetAttribute(descriptor, name, type, n, values));
}

static void set_descriptor(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value)
{
    set(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t descriptor;

    ok(cudnnBackendCreateDescriptor(type, &descriptor));
    return descriptor;
}

/* ---- graphs ---- */

enum { MAX_PARTS = 32 };

/* Descriptors in the order in which they were made, the operations among them, and where the data are. */
static struct graph {
    cudnnBackendDescriptor_t parts[MAX_PARTS], operations[MAX_PARTS];
    int n_parts, n_operations, n_data;
    int64_t ids[MAX_PARTS];
    void *data[MAX_PARTS];
} graph;

static int start(void **state)
{
    (void)state;
    graph = (struct graph){0};
    return 0;
}

static cudnnBackendDescriptor_t part(cudnnBackendDescriptorType_t type)
{
    assert_true(graph.n_parts < MAX_PARTS);
    return graph.parts[graph.n_parts++] = make(type);
}

static cudnnBackendDescriptor_t operation(cudnnBackendDescriptorType_t type)
{
    return graph.operations[graph.n_operations++] = part(type);
}

/* A tensor of the graph. Without a `rank` it is one of 4 dimensions; matrices have 3. It is between two operations if it has no data. */
static cudnnBackendDescriptor_t graph_tensor(const struct tensor *t, int rank, void *data)
{
    const struct dims d = t->dims;
    const int64_t id = graph.n_parts, alignment = 16, dims[] = {d.n, d.c, d.h, d.w};
    const int64_t strides[] = {d.c * d.h * d.w, t->layout == CHANNELS_LAST ? 1 : d.h * d.w, t->layout == CHANNELS_LAST ? d.w * d.c : d.w,
                               t->layout == CHANNELS_LAST ? d.c : 1};
    const bool is_virtual = !data;
    cudnnBackendDescriptor_t made = part(CUDNN_BACKEND_TENSOR_DESCRIPTOR);

    set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->type);
    set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dims + 4 - rank);
    set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, strides + 4 - rank);
    set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    ok(cudnnBackendFinalize(made));
    if (data) {
        graph.ids[graph.n_data] = id;
        graph.data[graph.n_data++] = data;
    }
    return made;
}

/* A float between two operations, of the shape of a tensor. */
static cudnnBackendDescriptor_t between(const struct tensor *like, int rank)
{
    struct tensor t = {.type = CUDNN_DATA_FLOAT, .layout = like->layout, .dims = like->dims};

    return graph_tensor(&t, rank, NULL);
}

/* A number that the host passes when it executes the graph. */
static cudnnBackendDescriptor_t number(float *value)
{
    const int64_t id = graph.n_parts, ones[] = {1, 1, 1, 1};
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const bool by_value = true;
    cudnnBackendDescriptor_t made = part(CUDNN_BACKEND_TENSOR_DESCRIPTOR);

    set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, ones);
    set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, ones);
    set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, (const int64_t[]){4});
    set(made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    ok(cudnnBackendFinalize(made));
    graph.ids[graph.n_data] = id;
    graph.data[graph.n_data++] = value;
    return made;
}

/* out = mode(x, b); b may be NULL. */
static void pointwise(cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t out)
{
    const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t function = part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnBackendDescriptor_t op = operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);

    set(function, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(function, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
    ok(cudnnBackendFinalize(function));
    set_descriptor(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
    set_descriptor(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        set_descriptor(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    set_descriptor(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out);
    ok(cudnnBackendFinalize(op));
}

/* ---- execution ---- */

static int64_t engine_of(cudnnBackendDescriptor_t configuration)
{
    cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    int64_t n, index;

    ok(cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine));
    ok(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, &index));
    ok(cudnnBackendDestroyDescriptor(engine));
    return index;
}

static void execute(cudnnBackendDescriptor_t configuration)
{
    cudnnBackendDescriptor_t plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    int64_t n, bytes;
    void *workspace;

    set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    set_descriptor(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    ok(cudnnBackendFinalize(plan));
    ok(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes));
    ok(cudaMalloc(&workspace, (size_t)bytes + 1));
    set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, graph.n_data, graph.ids);
    set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, graph.n_data, graph.data);
    set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    ok(cudnnBackendFinalize(pack));
    ok(cudnnBackendExecute(handle, plan, pack));
    ok(cudaDeviceSynchronize());
    ok(cudaFree(workspace));
    ok(cudnnBackendDestroyDescriptor(pack));
    ok(cudnnBackendDestroyDescriptor(plan));
}

static bool tries_all; /* --all */

/* Executes the graph by the first of the suggested engines, or by all different ones, and compares the result each time. */
static void run_graph(struct tensor *result, const double *want, double tolerance, const char *name)
{
    enum { MAX_CONFIGURATIONS = 32 };
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    cudnnBackendDescriptor_t whole = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR), heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    cudnnBackendDescriptor_t configurations[MAX_CONFIGURATIONS];
    int64_t n = 0, seen[MAX_CONFIGURATIONS];
    int n_seen = 0;

    set(whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph.n_operations, graph.operations);
    set(whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    ok(cudnnBackendFinalize(whole));
    set_descriptor(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole);
    set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    ok(cudnnBackendFinalize(heuristic));
    for (int i = 0; i < MAX_CONFIGURATIONS; i++)
        configurations[i] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    ok(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGURATIONS, &n,
                                configurations));
    for (int64_t i = 0; i < n && (tries_all || !n_seen); i++) {
        const int64_t engine = engine_of(configurations[i]);
        bool is_new = true;

        for (int k = 0; k < n_seen; k++)
            is_new = is_new && seen[k] != engine;
        if (!is_new)
            continue;
        seen[n_seen++] = engine;
        print_message("%s: engine %d\n", name, (int)engine);
        ok(cudaMemset(result->device, 0xff, bytes_of(result))); /* NaN in all types */
        execute(configurations[i]);
        tensor_expect(result, want, tolerance, name);
    }
    assert_true(n_seen);
    for (int i = 0; i < MAX_CONFIGURATIONS; i++)
        ok(cudnnBackendDestroyDescriptor(configurations[i]));
    ok(cudnnBackendDestroyDescriptor(heuristic));
    ok(cudnnBackendDestroyDescriptor(whole));
    while (graph.n_parts)
        ok(cudnnBackendDestroyDescriptor(graph.parts[--graph.n_parts]));
}

/* ---- the graphs that are tested ---- */

static struct tensor a, b, bias, y, stats;
static double want[MAX_ELEMENTS];

/* max(a * b + bias, 0), with a bias for each channel */
static void test_pointwise(void **state)
{
    const struct dims shape = {2, 8, 6, 5};
    cudnnBackendDescriptor_t product, sum;

    (void)state;
    tensor_random(&a, CUDNN_DATA_FLOAT, CHANNELS_LAST, shape, 8, 1);
    tensor_random(&b, CUDNN_DATA_FLOAT, CHANNELS_LAST, shape, 9, 1);
    tensor_random(&bias, CUDNN_DATA_FLOAT, CHANNELS_LAST, (struct dims){1, shape.c, 1, 1}, 7, 1);
    tensor_empty(&y, CUDNN_DATA_FLOAT, CHANNELS_LAST, shape);
    product = between(&y, 4);
    sum = between(&y, 4);
    pointwise(CUDNN_POINTWISE_MUL, graph_tensor(&a, 4, a.device), graph_tensor(&b, 4, b.device), product);
    pointwise(CUDNN_POINTWISE_ADD, product, graph_tensor(&bias, 4, bias.device), sum);
    pointwise(CUDNN_POINTWISE_RELU_FWD, sum, NULL, graph_tensor(&y, 4, y.device));
    for (int i = 0; i < elements(shape); i++)
        want[i] = fmax(a.value[i] * b.value[i] + bias.value[i / (shape.h * shape.w) % shape.c], 0);
    run_graph(&y, want, 0, "pointwise");
    tensor_finish(&a);
    tensor_finish(&b);
    tensor_finish(&bias);
    tensor_finish(&y);
}

/* The product of matrices, of halves; with a bias for each column and ReLU if it is fused. */
static void multiply(bool is_fused)
{
    enum { M = 48, N = 40, K = 56, BATCH = 2 };
    const cudnnDataType_t half = CUDNN_DATA_HALF, compute = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how, op, product, sum, out;

    tensor_random(&a, half, CUDNN_TENSOR_NCHW, (struct dims){1, BATCH, M, K}, 3, 1);
    tensor_random(&b, half, CUDNN_TENSOR_NCHW, (struct dims){1, BATCH, K, N}, 3, 1);
    tensor_random(&bias, half, CUDNN_TENSOR_NCHW, (struct dims){1, 1, 1, N}, 9, 1);
    tensor_empty(&y, half, CUDNN_TENSOR_NCHW, (struct dims){1, BATCH, M, N});
    out = graph_tensor(&y, 3, y.device);
    product = is_fused ? between(&y, 3) : out;
    how = part(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    ok(cudnnBackendFinalize(how));
    op = operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_descriptor(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, graph_tensor(&a, 3, a.device));
    set_descriptor(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, graph_tensor(&b, 3, b.device));
    set_descriptor(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, product);
    set_descriptor(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    ok(cudnnBackendFinalize(op));
    if (is_fused) {
        sum = between(&y, 3);
        pointwise(CUDNN_POINTWISE_ADD, product, graph_tensor(&bias, 3, bias.device), sum);
        pointwise(CUDNN_POINTWISE_RELU_FWD, sum, NULL, out);
    }
    for (int i = 0; i < BATCH * M * N; i++) {
        double dot = 0;

        for (int k = 0; k < K; k++)
            dot += a.value[i / N * K + k] * b.value[(i / (M * N) * K + k) * N + i % N];
        want[i] = is_fused ? fmax(dot + bias.value[i % N], 0) : dot;
    }
    run_graph(&y, want, 0, is_fused ? "fused product" : "product");
    tensor_finish(&a);
    tensor_finish(&b);
    tensor_finish(&bias);
    tensor_finish(&y);
}

static void test_product(void **state)
{
    (void)state;
    multiply(false);
}

static void test_fused_product(void **state)
{
    (void)state;
    multiply(true);
}

/* A convolution of halves with a bias for each channel and ReLU. */
static void test_fused_convolution(void **state)
{
    enum { SIDE = 3 };
    const struct dims in = {2, 8, 7, 6}, filter = {16, 8, SIDE, SIDE}, out = {2, 16, 7, 6};
    const cudnnDataType_t half = CUDNN_DATA_HALF, compute = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t n_dims = 2, ones[] = {1, 1};
    const float one = 1, zero = 0;
    cudnnBackendDescriptor_t how, op, product, sum;

    (void)state;
    tensor_random(&a, half, CHANNELS_LAST, in, 3, 1);
    tensor_random(&b, half, CHANNELS_LAST, filter, 3, 1);
    tensor_random(&bias, half, CHANNELS_LAST, (struct dims){1, out.c, 1, 1}, 9, 1);
    tensor_empty(&y, half, CHANNELS_LAST, out);
    product = between(&y, 4);
    sum = between(&y, 4);
    how = part(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n_dims);
    set(how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    set(how, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, ones);
    set(how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, ones);
    set(how, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
    set(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones);
    ok(cudnnBackendFinalize(how));
    op = operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    set_descriptor(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, graph_tensor(&a, 4, a.device));
    set_descriptor(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, graph_tensor(&b, 4, b.device));
    set_descriptor(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, product);
    set_descriptor(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, how);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
    ok(cudnnBackendFinalize(op));
    pointwise(CUDNN_POINTWISE_ADD, product, graph_tensor(&bias, 4, bias.device), sum);
    pointwise(CUDNN_POINTWISE_RELU_FWD, sum, NULL, graph_tensor(&y, 4, y.device));
    for (int i = 0; i < elements(out); i++) {
        const int w = i % out.w, h = i / out.w % out.h, k = i / (out.h * out.w) % out.c, n = i / (out.h * out.w * out.c);
        double dot = bias.value[k];

        for (int j = 0; j < in.c * SIDE * SIDE; j++) {
            const int c = j / (SIDE * SIDE), fh = j / SIDE % SIDE, fw = j % SIDE, x_h = h + fh - 1, x_w = w + fw - 1;

            if (x_h >= 0 && x_h < in.h && x_w >= 0 && x_w < in.w)
                dot += a.value[at(in, n, c, x_h, x_w)] * b.value[at(filter, k, c, fh, fw)];
        }
        want[i] = fmax(dot, 0);
    }
    run_graph(&y, want, 1e-5, "fused convolution"); /* some engines transform */
    tensor_finish(&a);
    tensor_finish(&b);
    tensor_finish(&bias);
    tensor_finish(&y);
}

/* ---- attention ---- */

static const struct attention {
    const char *name;
    cudnnDataType_t type;
    int n_queries, n_keys, size;
    double tolerance; /* probabilities and results are rounded to the type */
} attentions[] = {
    {"attention of halves", CUDNN_DATA_HALF, 64, 64, 64, 2e-3},
    {"attention, not a multiple of any tile", CUDNN_DATA_HALF, 37, 53, 32, 2e-3},
    {"attention of bfloat16", CUDNN_DATA_BFLOAT16, 40, 70, 64, 1.6e-2},
};

/* softmax(scale * Q K^T) V for each of the heads, and the logarithms of the sums of exponentials. */
static void want_attention(const struct attention *t, const struct tensor *v, float scale, double *sums)
{
    const int heads = a.dims.n * a.dims.c;

    for (int row = 0; row < heads * t->n_queries; row++) {
        const double *q = a.value + row * t->size, *k = b.value + row / t->n_queries * t->n_keys * t->size;
        const double *values = v->value + row / t->n_queries * t->n_keys * t->size;
        double sum = 0;

        for (int i = 0; i < t->size; i++)
            want[row * t->size + i] = 0;
        for (int key = 0; key < t->n_keys; key++) {
            double dot = 0;

            for (int i = 0; i < t->size; i++)
                dot += q[i] * k[key * t->size + i];
            sum += exp(scale * dot);
            for (int i = 0; i < t->size; i++)
                want[row * t->size + i] += exp(scale * dot) * values[key * t->size + i];
        }
        for (int i = 0; i < t->size; i++)
            want[row * t->size + i] /= sum;
        sums[row] = log(sum);
    }
}

static void test_attention(void **state)
{
    static struct tensor v;
    static double sums[MAX_ELEMENTS];
    const struct attention *t = *state;
    const struct dims queries = {2, 2, t->n_queries, t->size}, keys = {2, 2, t->n_keys, t->size};
    float scale = 0.125f;
    cudnnBackendDescriptor_t op;

    tensor_random(&a, t->type, CUDNN_TENSOR_NCHW, queries, 8, 4);
    tensor_random(&b, t->type, CUDNN_TENSOR_NCHW, keys, 9, 4);
    tensor_random(&v, t->type, CUDNN_TENSOR_NCHW, keys, 10, 8);
    tensor_empty(&y, t->type, CUDNN_TENSOR_NCHW, queries);
    tensor_empty(&stats, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, (struct dims){2, 2, t->n_queries, 1});
    op = operation(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    set_descriptor(op, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, graph_tensor(&a, 4, a.device));
    set_descriptor(op, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, graph_tensor(&b, 4, b.device));
    set_descriptor(op, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, graph_tensor(&v, 4, v.device));
    set_descriptor(op, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, graph_tensor(&y, 4, y.device));
    set_descriptor(op, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, graph_tensor(&stats, 4, stats.device));
    set_descriptor(op, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, number(&scale));
    ok(cudnnBackendFinalize(op));
    want_attention(t, &v, scale, sums);
    run_graph(&y, want, t->tolerance, t->name);
    tensor_expect(&stats, sums, 1e-4, t->name);
    tensor_finish(&a);
    tensor_finish(&b);
    tensor_finish(&v);
    tensor_finish(&y);
    tensor_finish(&stats);
}

int main(int argc, char **argv)
{
    enum { N_ATTENTIONS = sizeof attentions / sizeof *attentions, N_OTHERS = 4 };
    struct CMUnitTest tests[N_OTHERS + N_ATTENTIONS] = {
        cmocka_unit_test_setup(test_pointwise, start),
        cmocka_unit_test_setup(test_product, start),
        cmocka_unit_test_setup(test_fused_product, start),
        cmocka_unit_test_setup(test_fused_convolution, start),
    };

    tries_all = argc > 1 && !strcmp(argv[1], "--all");
    for (size_t i = 0; i < N_ATTENTIONS; i++)
        tests[N_OTHERS + i] = (struct CMUnitTest){attentions[i].name, test_attention, start, NULL, (void *)&attentions[i]};
    return cmocka_run_group_tests(tests, create, destroy);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN: convolutions forward, of the gradient of the data, and of that of the filter, by the algorithms of the legacy API. The numbers are
 * small integers, so what multiplies and adds is exact; transforms (FFT, Winograd) round. */
#include "dnn.h"

struct shape {
    struct dims x;
    int k, side; /* outputs, and the filter's height and width */
    int pad, stride, dilation, groups;
};

static const struct shape same = {{2, 4, 9, 7}, 5, 3, 1, 1, 1, 1};
static const struct shape strided = {{2, 4, 9, 7}, 5, 3, 1, 2, 1, 1};
static const struct shape dilated = {{1, 3, 9, 8}, 4, 3, 2, 1, 2, 1};
static const struct shape grouped = {{2, 4, 9, 7}, 6, 3, 1, 1, 1, 2};
static const struct shape deep = {{2, 8, 8, 8}, 16, 3, 1, 1, 1, 1};
static const struct shape pointwise = {{2, 8, 6, 5}, 8, 1, 0, 1, 1, 1};

enum direction { FORWARD, DATA, FILTER };

static const struct row {
    const char *name;
    enum direction direction;
    int algorithm;
    cudnnDataType_t type;
    cudnnTensorFormat_t layout;
    const struct shape *shape;
    cudnnConvolutionMode_t mode;
    double beta, tolerance;
} rows[] = {
#define F32 CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW
#define F16 CUDNN_DATA_HALF, CUDNN_TENSOR_NCHW
#define F16_LAST CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC
#define CROSS CUDNN_CROSS_CORRELATION
    {"forward, implicit GEMM", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, F32, &same, CROSS, -3, 0},
    {"forward, implicit GEMM, strides", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, F32, &strided, CROSS, 0, 0},
    {"forward, implicit GEMM, dilated", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, F32, &dilated, CROSS, 0, 0},
    {"forward, implicit GEMM, groups", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, F32, &grouped, CROSS, 0, 0},
    {"forward, implicit GEMM, flipped filter", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, F32, &same, CUDNN_CONVOLUTION, 0, 0},
    {"forward, implicit GEMM, halves", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, F16, &same, CROSS, 0, 0},
    {"forward, precomputed GEMM", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, F32, &same, CROSS, 0, 0},
    {"forward, precomputed GEMM, 1 x 1", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, F32, &pointwise, CROSS, 0, 0},
    {"forward, precomputed GEMM, halves", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, F16, &deep, CROSS, 0, 0},
    {"forward, precomputed GEMM, halves, channels last", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, F16_LAST, &deep, CROSS,
     0, 0},
    {"forward, GEMM", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, F32, &same, CROSS, 0, 0},
    {"forward, FFT", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_FFT, F32, &same, CROSS, 0, 1e-5},
    {"forward, FFT in tiles", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, F32, &same, CROSS, 0, 1e-5},
    {"forward, Winograd, not fused", FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, F32, &deep, CROSS, 0, 1e-4},

    {"data, algorithm 0", DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, F32, &same, CROSS, 0, 0},
    {"data, algorithm 0, strides", DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, F32, &strided, CROSS, 0, 0},
    {"data, algorithm 1", DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, F32, &same, CROSS, -3, 0},
    {"data, algorithm 1, groups", DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, F32, &grouped, CROSS, 0, 0},
    {"data, algorithm 1, halves", DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, F16, &deep, CROSS, 0, 0},
    {"data, FFT", DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, F32, &same, CROSS, 0, 1e-5},
    {"data, FFT in tiles", DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, F32, &same, CROSS, 0, 1e-5},
    {"data, Winograd, not fused", DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, F32, &deep, CROSS, 0, 1e-3},

    {"filter, algorithm 0", FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, F32, &same, CROSS, 0, 0},
    {"filter, algorithm 0, strides", FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, F32, &strided, CROSS, 0, 0},
    {"filter, algorithm 1", FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, F32, &same, CROSS, -3, 0},
    {"filter, algorithm 1, groups", FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, F32, &grouped, CROSS, 0, 0},
    {"filter, algorithm 1, halves", FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, F16, &deep, CROSS, 0, 0},
    {"filter, algorithm 3", FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, F32, &same, CROSS, 0, 0},
    {"filter, FFT", FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, F32, &same, CROSS, 0, 1e-5},
    {"filter, Winograd, not fused", FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, F32, &deep, CROSS, 0, 1e-4},
};

/* The three tensors of a convolution: y = x * w. One of them is computed from the other two. */
struct convolution {
    struct tensor x, w, y;
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t descriptor;
};

static const double alpha = 2;

/* want = alpha * the sum of the products + beta * what the tensor contained. Each of the products has one element of x, of w and of y. */
static void reference(const struct convolution *conv, const struct row *row, double *want)
{
    const struct shape *s = row->shape;
    const struct dims x = conv->x.dims, w = conv->w.dims, y = conv->y.dims;
    const struct tensor *out = row->direction == FORWARD ? &conv->y : row->direction == DATA ? &conv->x : &conv->w;

    for (int i = 0; i < elements(out->dims); i++)
        want[i] = row->beta == 0 ? 0 : row->beta * out->value[i];
    for (int n = 0; n < y.n; n++)
        for (int k = 0; k < y.c; k++)
            for (int i = 0; i < y.h * y.w; i++)
                for (int j = 0; j < w.c * s->side * s->side; j++) {
                    const int c = j / (s->side * s->side), fh = j / s->side % s->side, fw = j % s->side;
                    const int h = i / y.w * s->stride - s->pad + fh * s->dilation, v = i % y.w * s->stride - s->pad + fw * s->dilation;
                    const int last = row->mode == CUDNN_CONVOLUTION ? s->side - 1 : 0; /* a flipped filter: from its last element on */
                    int ix, iw, iy;

                    if (h < 0 || h >= x.h || v < 0 || v >= x.w)
                        continue;
                    ix = at(x, n, k / (y.c / s->groups) * w.c + c, h, v);
                    iw = at(w, k, c, last ? last - fh : fh, last ? last - fw : fw);
                    iy = at(y, n, k, i / y.w, i % y.w);
                    if (row->direction == FORWARD)
                        want[iy] += alpha * conv->x.value[ix] * conv->w.value[iw];
                    else if (row->direction == DATA)
                        want[ix] += alpha * conv->y.value[iy] * conv->w.value[iw];
                    else
                        want[iw] += alpha * conv->x.value[ix] * conv->y.value[iy];
                }
}

static void tensor_for(struct tensor *t, const struct row *row, enum direction computes_it, struct dims dims)
{
    if (row->direction == computes_it && row->beta == 0)
        tensor_empty(t, row->type, row->layout, dims);
    else
        tensor_random(t, row->type, row->layout, dims, 3, 1);
}

static void convolution_init(struct convolution *conv, const struct row *row)
{
    const struct shape *s = row->shape;
    const struct dims filter = {s->k, s->x.c / s->groups, s->side, s->side};
    struct dims y;

    ok(cudnnCreateConvolutionDescriptor(&conv->descriptor));
    ok(cudnnSetConvolution2dDescriptor(conv->descriptor, s->pad, s->pad, s->stride, s->stride, s->dilation, s->dilation, row->mode,
                                       CUDNN_DATA_FLOAT));
    ok(cudnnSetConvolutionGroupCount(conv->descriptor, s->groups));
    ok(cudnnSetConvolutionMathType(conv->descriptor, CUDNN_DEFAULT_MATH));
    ok(cudnnCreateFilterDescriptor(&conv->filter));
    ok(cudnnSetFilter4dDescriptor(conv->filter, row->type, row->layout, filter.n, filter.c, filter.h, filter.w));
    tensor_for(&conv->x, row, DATA, s->x);
    tensor_for(&conv->w, row, FILTER, filter);
    ok(cudnnGetConvolution2dForwardOutputDim(conv->descriptor, conv->x.descriptor, conv->filter, &y.n, &y.c, &y.h, &y.w));
    assert_int_equal(y.h, (s->x.h + 2 * s->pad - s->dilation * (s->side - 1) - 1) / s->stride + 1);
    tensor_for(&conv->y, row, FORWARD, y);
}

static void convolution_finish(struct convolution *conv)
{
    tensor_finish(&conv->x);
    tensor_finish(&conv->w);
    tensor_finish(&conv->y);
    ok(cudnnDestroyFilterDescriptor(conv->filter));
    ok(cudnnDestroyConvolutionDescriptor(conv->descriptor));
}

static int forward(struct convolution *c, const struct row *row, void *workspace, size_t *bytes)
{
    const float a = (float)alpha, b = (float)row->beta;
    const cudnnConvolutionFwdAlgo_t algorithm = row->algorithm;

    return workspace ? cudnnConvolutionForward(handle, &a, c->x.descriptor, c->x.device, c->filter, c->w.device, c->descriptor, algorithm,
                                               workspace, *bytes, &b, c->y.descriptor, c->y.device)
                     : cudnnGetConvolutionForwardWorkspaceSize(handle, c->x.descriptor, c->filter, c->descriptor, c->y.descriptor,
                                                               algorithm, bytes);
}

static int data(struct convolution *c, const struct row *row, void *workspace, size_t *bytes)
{
    const float a = (float)alpha, b = (float)row->beta;
    const cudnnConvolutionBwdDataAlgo_t algorithm = row->algorithm;

    return workspace ? cudnnConvolutionBackwardData(handle, &a, c->filter, c->w.device, c->y.descriptor, c->y.device, c->descriptor,
                                                    algorithm, workspace, *bytes, &b, c->x.descriptor, c->x.device)
                     : cudnnGetConvolutionBackwardDataWorkspaceSize(handle, c->filter, c->y.descriptor, c->descriptor, c->x.descriptor,
                                                                    algorithm, bytes);
}

static int filter(struct convolution *c, const struct row *row, void *workspace, size_t *bytes)
{
    const float a = (float)alpha, b = (float)row->beta;
    const cudnnConvolutionBwdFilterAlgo_t algorithm = row->algorithm;

    return workspace ? cudnnConvolutionBackwardFilter(handle, &a, c->x.descriptor, c->x.device, c->y.descriptor, c->y.device, c->descriptor,
                                                      algorithm, workspace, *bytes, &b, c->filter, c->w.device)
                     : cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, c->x.descriptor, c->y.descriptor, c->descriptor, c->filter,
                                                                      algorithm, bytes);
}

/* Without a workspace these tell its size, else they compute. */
static int (*const compute[])(struct convolution *c, const struct row *row, void *workspace, size_t *bytes) = {
    [FORWARD] = forward,
    [DATA] = data,
    [FILTER] = filter,
};

static void test_convolution(void **state)
{
    const struct row *row = *state;
    static struct convolution conv;
    static double want[MAX_ELEMENTS];
    struct tensor *const results[] = {[FORWARD] = &conv.y, [DATA] = &conv.x, [FILTER] = &conv.w};
    size_t bytes = 0;
    void *workspace;

    convolution_init(&conv, row);
    reference(&conv, row, want);
    ok(compute[row->direction](&conv, row, NULL, &bytes));
    ok(cudaMalloc(&workspace, bytes + 1));
    ok(compute[row->direction](&conv, row, workspace, &bytes));
    tensor_expect(results[row->direction], want, row->tolerance, row->name);
    ok(cudaFree(workspace));
    convolution_finish(&conv);
}

int main(void)
{
    enum { N_ROWS = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[N_ROWS];

    for (size_t i = 0; i < N_ROWS; i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].name, .test_func = test_convolution, .initial_state = (void *)&rows[i]};
    return cmocka_run_group_tests(tests, create, destroy);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN: pooling, softmax, batch normalization, activations and operations on tensors, forward and backward, of floats and halves.
 * Convolutions and attention have programs of their own. */
#include "dnn.h"

#define FLOATS CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW
#define HALVES CUDNN_DATA_HALF, CUDNN_TENSOR_NCHW
#define FLOATS_LAST CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC /* the channels are the last dimension */

static const float one = 1, zero = 0;
static const struct dims shape = {2, 5, 7, 6};

/* The arrays of one test; each is made and finished by the test that uses it. */
static struct tensor x, y, dx, dy;
static double want[MAX_ELEMENTS];

/* The tolerance for results of about 1. */
static double precision(cudnnDataType_t type)
{
    return type == CUDNN_DATA_HALF ? 2e-3 : 2e-6;
}

/* ---- pooling ---- */

static const struct pooling {
    const char *name;
    cudnnPoolingMode_t mode;
    cudnnDataType_t type;
    cudnnTensorFormat_t layout;
} poolings[] = {
    {"maximum", CUDNN_POOLING_MAX, FLOATS},
    {"maximum, channels last", CUDNN_POOLING_MAX, FLOATS_LAST},
    {"maximum, deterministic", CUDNN_POOLING_MAX_DETERMINISTIC, FLOATS},
    {"maximum, halves", CUDNN_POOLING_MAX, HALVES},
    {"average with the padding", CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, FLOATS},
    {"average without the padding", CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, FLOATS},
    {"average, halves", CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, HALVES},
};

enum { WINDOW = 3, PAD = 1, STRIDE = 2 };

/* One window of the plane at `plane` of x: the result, and its gradient added to that of x. */
static double pool(cudnnPoolingMode_t mode, int plane, int row, int column, double gradient, double *gradients)
{
    const int first_h = row * STRIDE - PAD, first_w = column * STRIDE - PAD;
    double sum = 0;
    int n_inside = 0, largest = -1;

    for (int pass = 0; pass < 2; pass++) /* the second distributes the gradient of an average */
        for (int i = 0; i < WINDOW * WINDOW; i++) {
            const int h = first_h + i / WINDOW, w = first_w + i % WINDOW, index = plane + h * x.dims.w + w;

            if (h < 0 || h >= x.dims.h || w < 0 || w >= x.dims.w)
                continue;
            if (pass && mode != CUDNN_POOLING_MAX && mode != CUDNN_POOLING_MAX_DETERMINISTIC)
                gradients[index] += gradient / (mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? WINDOW * WINDOW : n_inside);
            if (pass)
                continue;
            n_inside++;
            sum += x.value[index];
            largest = largest < 0 || x.value[index] > x.value[largest] ? index : largest;
        }
    if (mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING)
        return sum / (WINDOW * WINDOW);
    if (mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING)
        return sum / n_inside;
    gradients[largest] += gradient;
    return x.value[largest];
}

static void test_pooling(void **state)
{
    const struct dims out = {shape.n, shape.c, (shape.h + 2 * PAD - WINDOW) / STRIDE + 1, (shape.w + 2 * PAD - WINDOW) / STRIDE + 1};

    (void)state;
    for (size_t p = 0; p < sizeof poolings / sizeof *poolings; p++) {
        const struct pooling *pooling = &poolings[p];
        static double gradients[MAX_ELEMENTS];
        cudnnPoolingDescriptor_t descriptor;

        ok(cudnnCreatePoolingDescriptor(&descriptor));
        ok(cudnnSetPooling2dDescriptor(descriptor, pooling->mode, CUDNN_PROPAGATE_NAN, WINDOW, WINDOW, PAD, PAD, STRIDE, STRIDE));
        tensor_random(&x, pooling->type, pooling->layout, shape, 1000, 128);
        /* No two elements of a window are equal, so that it is clear which is the largest. */
        for (int i = 0; i < elements(shape); i++)
            x.value[i] = (i * 37 % 101 - 50) / 8.0;
        tensor_write(&x);
        tensor_empty(&y, pooling->type, pooling->layout, out);
        tensor_random(&dy, pooling->type, pooling->layout, out, 8, 4);
        tensor_empty(&dx, pooling->type, pooling->layout, shape);
        memset(gradients, 0, sizeof gradients);
        for (int i = 0; i < elements(out); i++) {
            const int plane = i / (out.h * out.w) * (shape.h * shape.w);

            want[i] = pool(pooling->mode, plane, i / out.w % out.h, i % out.w, dy.value[i], gradients);
        }
        ok(cudnnPoolingForward(handle, descriptor, &one, x.descriptor, x.device, &zero, y.descriptor, y.device));
        tensor_expect(&y, want, precision(pooling->type), pooling->name);
        ok(cudnnPoolingBackward(handle, descriptor, &one, y.descriptor, y.device, dy.descriptor, dy.device, x.descriptor, x.device, &zero,
                                dx.descriptor, dx.device));
        tensor_expect(&dx, gradients, precision(pooling->type), pooling->name);
        ok(cudnnDestroyPoolingDescriptor(descriptor));
        tensor_finish(&x);
        tensor_finish(&y);
        tensor_finish(&dy);
        tensor_finish(&dx);
    }
}

/* ---- softmax ---- */

static const struct softmax {
    const char *name;
    cudnnSoftmaxAlgorithm_t algorithm;
    cudnnSoftmaxMode_t mode;
    cudnnDataType_t type;
    cudnnTensorFormat_t layout;
} softmaxes[] = {
    {"over the channels", CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, FLOATS},
    {"over the channels, which are last", CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, FLOATS_LAST},
    {"over all of an instance", CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, FLOATS},
    {"fast", CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL, FLOATS},
    {"logarithm", CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE, FLOATS},
    {"halves", CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, HALVES},
};

/* The elements that are normalized together: n of them from `first` on, `stride` apart. */
struct group {
    int first, stride, n;
};

static struct group group_of(cudnnSoftmaxMode_t mode, int i)
{
    const int plane = shape.h * shape.w, instance = plane * shape.c;

    return mode == CUDNN_SOFTMAX_MODE_CHANNEL ? (struct group){i / instance * instance + i % plane, plane, shape.c}
                                              : (struct group){i / instance * instance, 1, instance};
}

static void want_softmax(const struct softmax *s)
{
    for (int i = 0; i < elements(shape); i++) {
        const struct group g = group_of(s->mode, i);
        double sum = 0;

        for (int k = 0; k < g.n; k++)
            sum += exp(x.value[g.first + k * g.stride]);
        want[i] = s->algorithm == CUDNN_SOFTMAX_LOG ? x.value[i] - log(sum) : exp(x.value[i]) / sum;
    }
}

/* The gradient of x, from y as cuDNN computed it. */
static void want_softmax_gradient(const struct softmax *s)
{
    for (int i = 0; i < elements(shape); i++) {
        const struct group g = group_of(s->mode, i);
        double sum = 0;

        for (int k = 0; k < g.n; k++) {
            const int index = g.first + k * g.stride;

            sum += dy.value[index] * (s->algorithm == CUDNN_SOFTMAX_LOG ? 1 : y.value[index]);
        }
        want[i] = s->algorithm == CUDNN_SOFTMAX_LOG ? dy.value[i] - exp(y.value[i]) * sum : y.value[i] * (dy.value[i] - sum);
    }
}

static void test_softmax(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof softmaxes / sizeof *softmaxes; i++) {
        const struct softmax *s = &softmaxes[i];

        tensor_random(&x, s->type, s->layout, shape, 40, 8);
        tensor_random(&dy, s->type, s->layout, shape, 8, 4);
        tensor_empty(&y, s->type, s->layout, shape);
        tensor_empty(&dx, s->type, s->layout, shape);
        want_softmax(s);
        ok(cudnnSoftmaxForward(handle, s->algorithm, s->mode, &one, x.descriptor, x.device, &zero, y.descriptor, y.device));
        tensor_expect(&y, want, precision(s->type), s->name);
        want_softmax_gradient(s);
        ok(cudnnSoftmaxBackward(handle, s->algorithm, s->mode, &one, y.descriptor, y.device, dy.descriptor, dy.device, &zero, dx.descriptor,
                                dx.device));
        tensor_expect(&dx, want, 4 * precision(s->type), s->name);
        tensor_finish(&x);
        tensor_finish(&y);
        tensor_finish(&dy);
        tensor_finish(&dx);
    }
}

/* ---- activations ---- */

static double sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

enum { CEILING = 2 }; /* of clipped ReLU; alpha of ELU is half of it, beta of swish is 1 */

static double activate(cudnnActivationMode_t mode, double v)
{
    switch ((int)mode) {
    case CUDNN_ACTIVATION_SIGMOID:
        return sigmoid(v);
    case CUDNN_ACTIVATION_RELU:
        return fmax(v, 0);
    case CUDNN_ACTIVATION_TANH:
        return tanh(v);
    case CUDNN_ACTIVATION_CLIPPED_RELU:
        return fmin(fmax(v, 0), CEILING);
    case CUDNN_ACTIVATION_ELU:
        return v > 0 ? v : CEILING * expm1(v);
    default:
        return v * sigmoid(v);
    }
}

/* The slope by its definition: none of the values is at a corner. */
static double slope(cudnnActivationMode_t mode, double v)
{
    const double step = 1e-6;

    return (activate(mode, v + step) - activate(mode, v - step)) / (2 * step);
}

static const struct activation {
    const char *name;
    cudnnActivationMode_t mode;
    cudnnDataType_t type;
    cudnnTensorFormat_t layout;
} activations[] = {
    {"sigmoid", CUDNN_ACTIVATION_SIGMOID, FLOATS},   {"ReLU", CUDNN_ACTIVATION_RELU, FLOATS},
    {"tanh", CUDNN_ACTIVATION_TANH, FLOATS},         {"clipped ReLU", CUDNN_ACTIVATION_CLIPPED_RELU, FLOATS},
    {"ELU", CUDNN_ACTIVATION_ELU, FLOATS},           {"swish", CUDNN_ACTIVATION_SWISH, FLOATS},
    {"tanh, halves", CUDNN_ACTIVATION_TANH, HALVES},
};

static void test_activations(void **state)
{
    (void)state;
    for (size_t a = 0; a < sizeof activations / sizeof *activations; a++) {
        const struct activation *activation = &activations[a];
        cudnnActivationDescriptor_t descriptor;

        ok(cudnnCreateActivationDescriptor(&descriptor));
        ok(cudnnSetActivationDescriptor(descriptor, activation->mode, CUDNN_PROPAGATE_NAN, CEILING));
        if (activation->mode == CUDNN_ACTIVATION_SWISH)
            ok(cudnnSetActivationDescriptorSwishBeta(descriptor, 1));
        tensor_random(&x, activation->type, activation->layout, shape, 20, 8);
        for (int i = 0; i < elements(shape); i++) /* away from corners: 0 and CEILING are multiples of 1/8 */
            x.value[i] += 1 / 16.0;
        tensor_write(&x);
        tensor_random(&dy, activation->type, activation->layout, shape, 8, 4);
        tensor_empty(&y, activation->type, activation->layout, shape);
        tensor_empty(&dx, activation->type, activation->layout, shape);
        for (int i = 0; i < elements(shape); i++)
            want[i] = activate(activation->mode, x.value[i]);
        ok(cudnnActivationForward(handle, descriptor, &one, x.descriptor, x.device, &zero, y.descriptor, y.device));
        tensor_expect(&y, want, precision(activation->type), activation->name);
        for (int i = 0; i < elements(shape); i++)
            want[i] = dy.value[i] * slope(activation->mode, x.value[i]);
        ok(cudnnActivationBackward(handle, descriptor, &one, y.descriptor, y.device, dy.descriptor, dy.device, x.descriptor, x.device,
                                   &zero, dx.descriptor, dx.device));
        tensor_expect(&dx, want, 4 * precision(activation->type), activation->name);
        ok(cudnnDestroyActivationDescriptor(descriptor));
        tensor_finish(&x);
        tensor_finish(&y);
        tensor_finish(&dy);
        tensor_finish(&dx);
    }
}

/* ---- batch normalization ---- */

static const double epsilon = 1e-4, factor = 0.25;

static const struct batch_norm {
    const char *name;
    cudnnBatchNormMode_t mode;
    cudnnDataType_t type; /* of the data; the statistics are floats */
    cudnnTensorFormat_t layout;
} batch_norms[] = {
    {"per activation", CUDNN_BATCHNORM_PER_ACTIVATION, FLOATS},
    {"per channel", CUDNN_BATCHNORM_SPATIAL, FLOATS},
    {"per channel, channels last", CUDNN_BATCHNORM_SPATIAL, FLOATS_LAST},
    {"per channel, persistent", CUDNN_BATCHNORM_SPATIAL_PERSISTENT, FLOATS},
    {"per channel, halves", CUDNN_BATCHNORM_SPATIAL, HALVES},
};

static struct tensor scale, bias, mean, variance, saved_mean, saved_inverse, dscale, dbias;
static struct tensor *const statistics[] = {&scale, &bias, &mean, &variance, &saved_mean, &saved_inverse, &dscale, &dbias};
enum { N_STATISTICS = sizeof statistics / sizeof *statistics };

/* The statistics to which element i belongs. */
static int statistic_of(cudnnBatchNormMode_t mode, int i)
{
    return mode == CUDNN_BATCHNORM_PER_ACTIVATION ? i % (shape.c * shape.h * shape.w) : i / (shape.h * shape.w) % shape.c;
}

/* Sums over the batch: of 1, of x and of its squares, of dy, and of dy times the normalized x. */
struct sums {
    double n, x, squares, dy, product, mean, variance, inverse;
};

static struct sums *sum_up(cudnnBatchNormMode_t mode)
{
    static struct sums sums[MAX_ELEMENTS];

    memset(sums, 0, sizeof sums);
    for (int i = 0; i < elements(shape); i++) {
        struct sums *s = &sums[statistic_of(mode, i)];

        s->n++;
        s->x += x.value[i];
        s->squares += x.value[i] * x.value[i];
        s->dy += dy.value[i];
    }
    for (int k = 0; k < elements(scale.dims); k++) {
        sums[k].mean = sums[k].x / sums[k].n;
        sums[k].variance = sums[k].squares / sums[k].n - sums[k].mean * sums[k].mean;
        sums[k].inverse = 1 / sqrt(sums[k].variance + epsilon);
    }
    for (int i = 0; i < elements(shape); i++) {
        struct sums *s = &sums[statistic_of(mode, i)];

        s->product += dy.value[i] * (x.value[i] - s->mean) * s->inverse;
    }
    return sums;
}

static void batch_norm_init(const struct batch_norm *b)
{
    const struct dims few =
        b->mode == CUDNN_BATCHNORM_PER_ACTIVATION ? (struct dims){1, shape.c, shape.h, shape.w} : (struct dims){1, shape.c, 1, 1};

    tensor_random(&x, b->type, b->layout, shape, 24, 8);
    tensor_random(&dy, b->type, b->layout, shape, 8, 4);
    tensor_empty(&y, b->type, b->layout, shape);
    tensor_empty(&dx, b->type, b->layout, shape);
    for (int i = 0; i < N_STATISTICS; i++)
        tensor_random(statistics[i], CUDNN_DATA_FLOAT, b->layout, few, 8 + i, 4);
    for (int k = 0; k < elements(few); k++)
        variance.value[k] = fabs(variance.value[k]) + 0.5;
    tensor_write(&variance);
}

static void batch_norm_finish(void)
{
    tensor_finish(&x);
    tensor_finish(&y);
    tensor_finish(&dy);
    tensor_finish(&dx);
    for (int i = 0; i < N_STATISTICS; i++)
        tensor_finish(statistics[i]);
}

static void test_batch_norm_inference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof batch_norms / sizeof *batch_norms; i++) {
        const struct batch_norm *b = &batch_norms[i];

        batch_norm_init(b);
        for (int k = 0; k < elements(shape); k++) {
            const int s = statistic_of(b->mode, k);

            want[k] = scale.value[s] * (x.value[k] - mean.value[s]) / sqrt(variance.value[s] + epsilon) + bias.value[s];
        }
        ok(cudnnBatchNormalizationForwardInference(handle, b->mode, &one, &zero, x.descriptor, x.device, y.descriptor, y.device,
                                                   scale.descriptor, scale.device, bias.device, mean.device, variance.device, epsilon));
        tensor_expect(&y, want, 2 * precision(b->type), b->name);
        batch_norm_finish();
    }
}

static void expect_training(const struct batch_norm *b, const struct sums *sums)
{
    static double old_mean[MAX_ELEMENTS], old_variance[MAX_ELEMENTS];
    const int n = elements(scale.dims);

    for (int k = 0; k < n; k++) {
        old_mean[k] = mean.value[k];
        old_variance[k] = variance.value[k];
    }
    for (int k = 0; k < elements(shape); k++) {
        const struct sums *s = &sums[statistic_of(b->mode, k)];

        want[k] = scale.value[s - sums] * (x.value[k] - s->mean) * s->inverse + bias.value[s - sums];
    }
    tensor_expect(&y, want, 8 * precision(b->type), b->name);
    for (int k = 0; k < n; k++)
        want[k] = sums[k].mean;
    tensor_expect(&saved_mean, want, 1e-5, b->name);
    for (int k = 0; k < n; k++)
        want[k] = sums[k].inverse;
    tensor_expect(&saved_inverse, want, 1e-5, b->name);
    for (int k = 0; k < n; k++)
        want[k] = (1 - factor) * old_mean[k] + factor * sums[k].mean;
    tensor_expect(&mean, want, 1e-5, b->name);
    for (int k = 0; k < n; k++) /* the running variance is that of the population, of which the batch is a sample */
        want[k] = (1 - factor) * old_variance[k] + factor * sums[k].variance * sums[k].n / (sums[k].n - 1);
    tensor_expect(&variance, want, 1e-5, b->name);
}

static void expect_gradients(const struct batch_norm *b, const struct sums *sums)
{
    for (int k = 0; k < elements(shape); k++) {
        const struct sums *s = &sums[statistic_of(b->mode, k)];
        const double normalized = (x.value[k] - s->mean) * s->inverse;

        want[k] = scale.value[s - sums] * s->inverse * (dy.value[k] - s->dy / s->n - normalized * s->product / s->n);
    }
    tensor_expect(&dx, want, 16 * precision(b->type), b->name);
    for (int k = 0; k < elements(scale.dims); k++)
        want[k] = sums[k].product;
    tensor_expect(&dscale, want, 2e-5, b->name);
    for (int k = 0; k < elements(scale.dims); k++)
        want[k] = sums[k].dy;
    tensor_expect(&dbias, want, 2e-5, b->name);
}

static void test_batch_norm_training(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof batch_norms / sizeof *batch_norms; i++) {
        const struct batch_norm *b = &batch_norms[i];
        const struct sums *sums;

        batch_norm_init(b);
        sums = sum_up(b->mode);
        ok(cudnnBatchNormalizationForwardTraining(handle, b->mode, &one, &zero, x.descriptor, x.device, y.descriptor, y.device,
                                                  scale.descriptor, scale.device, bias.device, factor, mean.device, variance.device,
                                                  epsilon, saved_mean.device, saved_inverse.device));
        expect_training(b, sums);
        ok(cudnnBatchNormalizationBackward(handle, b->mode, &one, &zero, &one, &zero, x.descriptor, x.device, dy.descriptor, dy.device,
                                           dx.descriptor, dx.device, scale.descriptor, scale.device, dscale.device, dbias.device, epsilon,
                                           saved_mean.device, saved_inverse.device));
        expect_gradients(b, sums);
        batch_norm_finish();
    }
}

/* ---- operations on tensors ---- */

static double operate(cudnnOpTensorOp_t op, double a, double b)
{
    switch ((int)op) {
    case CUDNN_OP_TENSOR_ADD:
        return a + b;
    case CUDNN_OP_TENSOR_MUL:
        return a * b;
    case CUDNN_OP_TENSOR_MIN:
        return fmin(a, b);
    case CUDNN_OP_TENSOR_MAX:
        return fmax(a, b);
    case CUDNN_OP_TENSOR_SQRT:
        return sqrt(a);
    default:
        return 1 - a; /* CUDNN_OP_TENSOR_NOT */
    }
}

/* c = op(2 a, -3 b) + 4 c, where b has one element for each channel. */
static void test_operations(void **state)
{
    static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF};
    const float two = 2, minus_three = -3, four = 4;

    (void)state;
    for (int form = 0; form < 12; form++) {
        const cudnnOpTensorOp_t op = form % 6;
        const cudnnDataType_t type = types[form / 6];
        cudnnOpTensorDescriptor_t descriptor;

        ok(cudnnCreateOpTensorDescriptor(&descriptor));
        ok(cudnnSetOpTensorDescriptor(descriptor, op, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
        tensor_random(&x, type, CUDNN_TENSOR_NCHW, shape, 8, 4);
        for (int i = 0; i < elements(shape) && op == CUDNN_OP_TENSOR_SQRT; i++)
            x.value[i] = fabs(x.value[i]);
        tensor_write(&x);
        tensor_random(&bias, type, CUDNN_TENSOR_NCHW, (struct dims){1, shape.c, 1, 1}, 8, 4);
        tensor_random(&y, type, CUDNN_TENSOR_NCHW, shape, 9, 4);
        for (int i = 0; i < elements(shape); i++)
            want[i] = operate(op, two * x.value[i], minus_three * bias.value[i / (shape.h * shape.w) % shape.c]) + four * y.value[i];
        ok(cudnnOpTensor(handle, descriptor, &two, x.descriptor, x.device, &minus_three, bias.descriptor, bias.device, &four, y.descriptor,
                         y.device));
        tensor_expect(&y, want, precision(type), "operation");
        ok(cudnnDestroyOpTensorDescriptor(descriptor));
        tensor_finish(&x);
        tensor_finish(&bias);
        tensor_finish(&y);
    }
}

/* Sets, scales, adds a bias, and changes the type and the layout. */
static void test_simple_operations(void **state)
{
    const float two = 2, three = 3, four = 4;

    (void)state;
    tensor_random(&x, FLOATS, shape, 8, 4);
    tensor_random(&bias, FLOATS, (struct dims){1, shape.c, 1, 1}, 8, 4);
    tensor_empty(&y, FLOATS, shape);
    ok(cudnnSetTensor(handle, y.descriptor, y.device, &three));
    for (int i = 0; i < elements(shape); i++)
        want[i] = three;
    tensor_expect(&y, want, 0, "set");
    ok(cudnnScaleTensor(handle, y.descriptor, y.device, &two));
    for (int i = 0; i < elements(shape); i++)
        want[i] *= two;
    tensor_expect(&y, want, 0, "scale");
    ok(cudnnAddTensor(handle, &four, bias.descriptor, bias.device, &two, y.descriptor, y.device));
    for (int i = 0; i < elements(shape); i++)
        want[i] = two * want[i] + four * bias.value[i / (shape.h * shape.w) % shape.c];
    tensor_expect(&y, want, 0, "add");
    tensor_finish(&y);

    tensor_empty(&y, FLOATS_LAST, shape);
    ok(cudnnTransformTensor(handle, &two, x.descriptor, x.device, &zero, y.descriptor, y.device));
    for (int i = 0; i < elements(shape); i++)
        want[i] = two * x.value[i];
    tensor_expect(&y, want, 0, "transform");
    tensor_finish(&y);
    tensor_finish(&x);
    tensor_finish(&bias);
}

static double reduce(cudnnReduceTensorOp_t op, double so_far, double v)
{
    switch ((int)op) {
    case CUDNN_REDUCE_TENSOR_MUL:
        return so_far * v;
    case CUDNN_REDUCE_TENSOR_MIN:
        return fmin(so_far, v);
    case CUDNN_REDUCE_TENSOR_MAX:
        return fmax(so_far, v);
    case CUDNN_REDUCE_TENSOR_AMAX:
        return fmax(so_far, fabs(v));
    case CUDNN_REDUCE_TENSOR_NORM1:
        return so_far + fabs(v);
    case CUDNN_REDUCE_TENSOR_NORM2:
        return so_far + v * v;
    default:
        return so_far + v; /* ADD, AVG */
    }
}

/* Over all but the channels. */
static void test_reductions(void **state)
{
    (void)state;
    for (cudnnReduceTensorOp_t op = CUDNN_REDUCE_TENSOR_ADD; op <= CUDNN_REDUCE_TENSOR_NORM2; op++) {
        cudnnReduceTensorDescriptor_t descriptor;
        size_t bytes;
        void *workspace;

        ok(cudnnCreateReduceTensorDescriptor(&descriptor));
        ok(cudnnSetReduceTensorDescriptor(descriptor, op, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                          CUDNN_32BIT_INDICES));
        tensor_random(&x, FLOATS, shape, 8, 4);
        for (int i = 0; i < elements(shape) && op == CUDNN_REDUCE_TENSOR_MUL; i++)
            x.value[i] = 1 + x.value[i] / 32;
        tensor_write(&x);
        tensor_empty(&y, FLOATS, (struct dims){1, shape.c, 1, 1});
        for (int c = 0; c < shape.c; c++) {
            const int n = shape.n * shape.h * shape.w;

            want[c] = op == CUDNN_REDUCE_TENSOR_MUL   ? 1
                      : op == CUDNN_REDUCE_TENSOR_MIN ? INFINITY
                      : op == CUDNN_REDUCE_TENSOR_MAX ? -INFINITY
                                                      : 0;
            for (int i = 0; i < n; i++)
                want[c] = reduce(op, want[c], x.value[at(shape, i / (shape.h * shape.w), c, 0, i % (shape.h * shape.w))]);
            want[c] = op == CUDNN_REDUCE_TENSOR_AVG ? want[c] / n : op == CUDNN_REDUCE_TENSOR_NORM2 ? sqrt(want[c]) : want[c];
        }
        ok(cudnnGetReductionWorkspaceSize(handle, descriptor, x.descriptor, y.descriptor, &bytes));
        ok(cudaMalloc(&workspace, bytes + 1));
        ok(cudnnReduceTensor(handle, descriptor, NULL, 0, workspace, bytes, &one, x.descriptor, x.device, &zero, y.descriptor, y.device));
        tensor_expect(&y, want, 1e-5, "reduction");
        ok(cudaFree(workspace));
        ok(cudnnDestroyReduceTensorDescriptor(descriptor));
        tensor_finish(&x);
        tensor_finish(&y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_batch_norm_inference),
        cmocka_unit_test(test_batch_norm_training),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_simple_operations),
        cmocka_unit_test(test_reductions),
    };

    return cmocka_run_group_tests(tests, create, destroy);
}

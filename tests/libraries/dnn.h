/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of cuDNN with a copy on the host: doubles in the order N, C, H, W, whatever type and layout the device has. */
#ifndef CUTTLE_TESTS_LIBRARIES_DNN_H
#define CUTTLE_TESTS_LIBRARIES_DNN_H

#include "library_test.h"

#include <cudnn.h>

enum { MAX_ELEMENTS = 20000 };

struct dims {
    int n, c, h, w;
};

struct tensor {
    cudnnDataType_t type; /* float, half or bfloat16 */
    cudnnTensorFormat_t layout;
    struct dims dims;
    cudnnTensorDescriptor_t descriptor;
    void *device;
    double value[MAX_ELEMENTS];
};

static cudnnHandle_t handle;

static inline int create(void **state)
{
    (void)state;
    return cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS ? 0 : -1;
}

static inline int destroy(void **state)
{
    (void)state;
    return cudnnDestroy(handle) == CUDNN_STATUS_SUCCESS ? 0 : -1;
}

static inline int elements(struct dims dims)
{
    return dims.n * dims.c * dims.h * dims.w;
}

/* Where the host has an element. */
static inline int at(struct dims dims, int n, int c, int h, int w)
{
    return ((n * dims.c + c) * dims.h + h) * dims.w + w;
}

/* Where the device has the element that the host has at i. */
static inline int device_index(const struct tensor *t, int i)
{
    const int w = i % t->dims.w, h = i / t->dims.w % t->dims.h, c = i / (t->dims.w * t->dims.h) % t->dims.c,
              n = i / (t->dims.w * t->dims.h * t->dims.c);

    return t->layout == CUDNN_TENSOR_NHWC ? ((n * t->dims.h + h) * t->dims.w + w) * t->dims.c + c : i;
}

static inline size_t bytes_of(const struct tensor *t)
{
    return (size_t)elements(t->dims) * (t->type == CUDNN_DATA_FLOAT ? 4 : 2);
}

/* Element i of an array of a type. The values that are stored are exact in it. */
static inline void store(cudnnDataType_t type, void *array, int i, double value)
{
    const float single = (float)value;
    uint32_t bits;

    memcpy(&bits, &single, sizeof bits);
    if (type == CUDNN_DATA_HALF)
        ((_Float16 *)array)[i] = (_Float16)value;
    else if (type == CUDNN_DATA_BFLOAT16)
        ((uint16_t *)array)[i] = (uint16_t)(bits >> 16);
    else
        ((float *)array)[i] = single;
}

static inline double load(cudnnDataType_t type, const void *array, int i)
{
    uint32_t bits;
    float single;

    if (type == CUDNN_DATA_HALF)
        return (double)((const _Float16 *)array)[i];
    if (type != CUDNN_DATA_BFLOAT16)
        return ((const float *)array)[i];
    bits = (uint32_t)((const uint16_t *)array)[i] << 16;
    memcpy(&single, &bits, sizeof single);
    return single;
}

/* Copies the host's values to the device. */
static inline void tensor_write(struct tensor *t)
{
    static float storage[MAX_ELEMENTS];

    for (int i = 0; i < elements(t->dims); i++)
        store(t->type, storage, device_index(t, i), t->value[i]);
    ok(cudaMemcpy(t->device, storage, bytes_of(t), cudaMemcpyHostToDevice));
}

/* Copies the device's values to the host. */
static inline void tensor_read(struct tensor *t)
{
    static float storage[MAX_ELEMENTS];

    ok(cudaDeviceSynchronize());
    ok(cudaMemcpy(storage, t->device, bytes_of(t), cudaMemcpyDeviceToHost));
    for (int i = 0; i < elements(t->dims); i++)
        t->value[i] = load(t->type, storage, device_index(t, i));
}

static inline void tensor_init(struct tensor *t, cudnnDataType_t type, cudnnTensorFormat_t layout, struct dims dims)
{
    assert_true(elements(dims) <= MAX_ELEMENTS);
    t->type = type;
    t->layout = layout;
    t->dims = dims;
    ok(cudnnCreateTensorDescriptor(&t->descriptor));
    ok(cudnnSetTensor4dDescriptor(t->descriptor, layout, type, dims.n, dims.c, dims.h, dims.w));
    ok(cudaMalloc(&t->device, bytes_of(t)));
}

/* A tensor of whole numbers from -range to range, divided by `divisor`. */
static inline void tensor_random(struct tensor *t, cudnnDataType_t type, cudnnTensorFormat_t layout, struct dims dims, int range,
                                 double divisor)
{
    uint64_t seed = (uint64_t)elements(dims) * 31 + (uint64_t)range;

    tensor_init(t, type, layout, dims);
    for (int i = 0; i < elements(dims); i++)
        t->value[i] = next_small(&seed, range) / divisor;
    tensor_write(t);
}

/* A tensor for results: NaN, so that an element that nobody writes is noticed. */
static inline void tensor_empty(struct tensor *t, cudnnDataType_t type, cudnnTensorFormat_t layout, struct dims dims)
{
    tensor_init(t, type, layout, dims);
    for (int i = 0; i < elements(dims); i++)
        t->value[i] = NAN;
    tensor_write(t);
}

static inline void tensor_finish(struct tensor *t)
{
    ok(cudnnDestroyTensorDescriptor(t->descriptor));
    ok(cudaFree(t->device));
}

/* Reads the result and compares it; the tolerance is relative for values over 1. */
static inline void tensor_expect(struct tensor *t, const double *want, double tolerance, const char *what)
{
    tensor_read(t);
    for (int i = 0; i < elements(t->dims); i++)
        if (!(fabs(t->value[i] - want[i]) <= tolerance * fmax(1, fabs(want[i])))) {
            print_error("%s: element %d is %.9g, not %.9g\n", what, i, t->value[i], want[i]);
            fail();
        }
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS: levels 1 to 3 in the four types, products of halves, batches, and cuBLASLt with an epilogue. The numbers are small integers, so
 * that sums are exact in every order and type. */
#include "library_test.h"

#include <complex.h>
#include <cublasLt.h>
#include <cublas_v2.h>

enum { M = 37, N = 29, K = 45 };

static cublasHandle_t handle;

static int create(void **state)
{
    (void)state;
    return cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS ? 0 : -1;
}

static int destroy(void **state)
{
    (void)state;
    return cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS ? 0 : -1;
}

/* ---- the four types ---- */

enum type { S, D, C, Z, TYPES };
static const size_t type_bytes[TYPES] = {4, 8, 8, 16};

static void put(enum type type, void *array, size_t i, double complex value)
{
    switch (type) {
    case S:
        ((float *)array)[i] = (float)creal(value);
        break;
    case D:
        ((double *)array)[i] = creal(value);
        break;
    case C:
        ((float complex *)array)[i] = (float complex)value;
        break;
    default:
        ((double complex *)array)[i] = value;
    }
}

static double complex get(enum type type, const void *array, size_t i)
{
    switch (type) {
    case S:
        return ((const float *)array)[i];
    case D:
        return ((const double *)array)[i];
    case C:
        return ((const float complex *)array)[i];
    default:
        return ((const double complex *)array)[i];
    }
}

static void *numbers(enum type type, size_t n, uint64_t seed)
{
    void *array = calloc(n, type_bytes[type]);

    assert_non_null(array);
    for (size_t i = 0; i < n; i++) {
        const double real = next_small(&seed, 4);

        put(type, array, i, type >= C ? real + next_small(&seed, 4) * I : real);
    }
    return array;
}

static void compare(enum type type, const void *got, const double complex *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_near(creal(get(type, got, i)), creal(want[i]), 1e-5);
        assert_near(cimag(get(type, got, i)), cimag(want[i]), 1e-5);
    }
}

/* ---- level 3 ---- */

static int gemm(enum type type, cublasOperation_t op_a, cublasOperation_t op_b, const void *alpha, const void *a, int lda, const void *b,
                int ldb, const void *beta, void *c)
{
    switch (type) {
    case S:
        return cublasSgemm(handle, op_a, op_b, M, N, K, alpha, a, lda, b, ldb, beta, c, M);
    case D:
        return cublasDgemm(handle, op_a, op_b, M, N, K, alpha, a, lda, b, ldb, beta, c, M);
    case C:
        return cublasCgemm(handle, op_a, op_b, M, N, K, alpha, a, lda, b, ldb, beta, c, M);
    default:
        return cublasZgemm(handle, op_a, op_b, M, N, K, alpha, a, lda, b, ldb, beta, c, M);
    }
}

static double complex element(enum type type, const void *array, cublasOperation_t op, int rows, int row, int column)
{
    const double complex x = get(type, array, op == CUBLAS_OP_N ? (size_t)column * rows + row : (size_t)row * rows + column);

    return op == CUBLAS_OP_C ? conj(x) : x;
}

static void test_gemm(void **state)
{
    static const int n_forms[TYPES] = {9, 5, 3, 1}; /* each is a kernel, which lavapipe compiles in up to six seconds */
    static const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};

    (void)state;
    for (enum type type = S; type < TYPES; type++)
        for (int form = 0; form < n_forms[type]; form++) {
            const cublasOperation_t op_a = ops[form / 3], op_b = ops[form % 3];
            const int lda = op_a == CUBLAS_OP_N ? M : K, ldb = op_b == CUBLAS_OP_N ? K : N;
            void *a = numbers(type, M * K, 1), *b = numbers(type, K * N, 2), *c = numbers(type, M * N, 3);
            double complex want[M * N];
            uint64_t alpha[2], beta[2];
            void *da = device_copy(a, M * K * type_bytes[type]), *db = device_copy(b, K * N * type_bytes[type]),
                 *dc = device_copy(c, M * N * type_bytes[type]);

            for (int i = 0; i < M; i++)
                for (int j = 0; j < N; j++) {
                    double complex sum = 0;

                    for (int k = 0; k < K; k++)
                        sum += element(type, a, op_a, lda, i, k) * element(type, b, op_b, ldb, k, j);
                    want[j * M + i] = 2 * sum - 3 * get(type, c, (size_t)(j * M + i));
                }
            put(type, alpha, 0, 2);
            put(type, beta, 0, -3);
            ok(gemm(type, op_a, op_b, alpha, da, lda, db, ldb, beta, dc));
            take_back(c, dc, M * N * type_bytes[type]);
            compare(type, c, want, M * N);
            ok(cudaFree(da));
            ok(cudaFree(db));
            free(a);
            free(b);
            free(c);
        }
}

/* ---- other functions ---- */

static void test_level_1(void **state)
{
    enum { SIZE = 1000 };
    float *x = numbers(S, SIZE, 4), *y = numbers(S, SIZE, 5);
    float *dx = device_copy(x, SIZE * 4), *dy = device_copy(y, SIZE * 4), found, two = 2, minus_one = -1;
    double dot = 0, squares = 0, magnitudes = 0;
    int index, first = 0;

    (void)state;
    for (int i = 0; i < SIZE; i++) {
        dot += x[i] * y[i];
        squares += x[i] * x[i];
        magnitudes += fabsf(x[i]);
        first = fabsf(x[i]) > fabsf(x[first]) ? i : first;
    }
    ok(cublasSdot(handle, SIZE, dx, 1, dy, 1, &found));
    assert_near(found, dot, 0);
    ok(cublasSnrm2(handle, SIZE, dx, 1, &found));
    assert_near(found, sqrt(squares), 1e-6);
    ok(cublasSasum(handle, SIZE, dx, 1, &found));
    assert_near(found, magnitudes, 0);
    ok(cublasIsamax(handle, SIZE, dx, 1, &index));
    assert_int_equal(index, first + 1);
    ok(cublasSaxpy(handle, SIZE, &two, dx, 1, dy, 1));
    ok(cublasSscal(handle, SIZE, &minus_one, dy, 1));
    ok(cudaMemcpy(x, dx, SIZE * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < SIZE; i++)
        y[i] = -(y[i] + 2 * x[i]);
    take_back(x, dy, SIZE * 4);
    assert_memory_equal(x, y, SIZE * 4);
    ok(cudaFree(dx));
    free(x);
    free(y);
}

static void test_gemv(void **state)
{
    const double one = 1, zero = 0;

    (void)state;
    for (int transposed = 0; transposed < 2; transposed++) {
        const int n_in = transposed ? M : N, n_out = transposed ? N : M;
        double *a = numbers(D, M * N, 6), *x = numbers(D, (size_t)n_in, 7), found[M + N];
        double *da = device_copy(a, M * N * 8), *dx = device_copy(x, (size_t)n_in * 8), *dy = device_copy(found, sizeof found);

        ok(cublasDgemv(handle, transposed ? CUBLAS_OP_T : CUBLAS_OP_N, M, N, &one, da, M, dx, 1, &zero, dy, 1));
        take_back(found, dy, sizeof found);
        for (int i = 0; i < n_out; i++) {
            double sum = 0;

            for (int k = 0; k < n_in; k++)
                sum += (transposed ? a[i * M + k] : a[k * M + i]) * x[k];
            assert_near(found[i], sum, 0);
        }
        ok(cudaFree(da));
        ok(cudaFree(dx));
        free(a);
        free(x);
    }
}

/* Solves L X = B for a lower triangular L with ones on the diagonal: the solution is the integers from which B was made. */
static void test_trsm(void **state)
{
    enum { SIZE = 24, COLUMNS = 7 };
    float *l = numbers(S, SIZE * SIZE, 8), *x = numbers(S, SIZE * COLUMNS, 9), b[SIZE * COLUMNS];
    const float one = 1;
    float *dl, *db;

    (void)state;
    for (int i = 0; i < SIZE; i++)
        for (int k = 0; k < SIZE; k++)
            l[k * SIZE + i] = i == k ? 1 : i - k == 1 || i - k == 3 ? l[k * SIZE + i] / 4 : 0;
    for (int j = 0; j < COLUMNS; j++)
        for (int i = 0; i < SIZE; i++) {
            b[j * SIZE + i] = 0;
            for (int k = 0; k <= i; k++)
                b[j * SIZE + i] += l[k * SIZE + i] * x[j * SIZE + k];
        }
    dl = device_copy(l, SIZE * SIZE * 4);
    db = device_copy(b, sizeof b);
    ok(cublasStrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, SIZE, COLUMNS, &one, dl, SIZE, db,
                   SIZE));
    take_back(b, db, sizeof b);
    for (int i = 0; i < SIZE * COLUMNS; i++)
        assert_near(b[i], x[i], 1e-4);
    ok(cudaFree(dl));
    free(l);
    free(x);
}

static void test_strided_batches(void **state)
{
    enum { SIZE = 16, BATCHES = 5, ALL = SIZE * SIZE * BATCHES };
    float *a = numbers(S, ALL, 10), *b = numbers(S, ALL, 11), c[ALL];
    float *da = device_copy(a, ALL * 4), *db = device_copy(b, ALL * 4), *dc = device_copy(c, ALL * 4);
    const float one = 1, zero = 0;

    (void)state;
    ok(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, SIZE, SIZE, SIZE, &one, da, SIZE, SIZE * SIZE, db, SIZE, SIZE * SIZE,
                                 &zero, dc, SIZE, SIZE * SIZE, BATCHES));
    take_back(c, dc, ALL * 4);
    for (int batch = 0; batch < BATCHES; batch++)
        for (int i = 0; i < SIZE * SIZE; i++) {
            const int first = batch * SIZE * SIZE;
            double sum = 0;

            for (int k = 0; k < SIZE; k++)
                sum += a[first + k * SIZE + i % SIZE] * b[first + i / SIZE * SIZE + k];
            assert_near(c[first + i], sum, 0);
        }
    ok(cudaFree(da));
    ok(cudaFree(db));
    free(a);
    free(b);
}

/* ---- other number formats ---- */

enum { SIZE = 48 };

/* Reads or writes element i of an array in a format; the numbers are exact in all of them. */
static void store(cudaDataType_t format, void *array, size_t i, double value)
{
    const float single = (float)value;
    uint32_t bits;

    memcpy(&bits, &single, sizeof bits);
    switch ((int)format) {
    case CUDA_R_16F:
        ((_Float16 *)array)[i] = (_Float16)value;
        break;
    case CUDA_R_16BF:
        ((uint16_t *)array)[i] = (uint16_t)(bits >> 16);
        break;
    default:
        ((float *)array)[i] = single;
    }
}

static double load(cudaDataType_t format, const void *array, size_t i)
{
    uint32_t bits;
    float single;

    switch ((int)format) {
    case CUDA_R_16F:
        return (double)((const _Float16 *)array)[i];
    case CUDA_R_16BF:
        bits = (uint32_t)((const uint16_t *)array)[i] << 16;
        memcpy(&single, &bits, sizeof single);
        return single;
    default:
        return ((const float *)array)[i];
    }
}

static const struct format {
    cudaDataType_t in, out;
    cublasComputeType_t compute;
} formats[] = {
    {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F},           {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F},         {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
};

/* A, B and C are square, and no element is larger than 4 bytes. */
static float a[SIZE * SIZE], b[SIZE * SIZE], c[SIZE * SIZE];
static double exact_a[SIZE * SIZE], exact_b[SIZE * SIZE];

static void make_matrices(cudaDataType_t format)
{
    uint64_t seed = format;

    for (size_t i = 0; i < SIZE * SIZE; i++) {
        store(format, a, i, exact_a[i] = next_small(&seed, 2));
        store(format, b, i, exact_b[i] = next_small(&seed, 2));
    }
}

static double product(size_t row, size_t column)
{
    double sum = 0;

    for (size_t k = 0; k < SIZE; k++)
        sum += exact_a[k * SIZE + row] * exact_b[column * SIZE + k];
    return sum;
}

static void test_formats(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        const struct format *format = &formats[f];
        const float one = 1, zero = 0;
        void *da, *db, *dc;

        make_matrices(format->in);
        da = device_copy(a, sizeof a);
        db = device_copy(b, sizeof b);
        dc = device_copy(c, sizeof c);
        ok(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, SIZE, SIZE, SIZE, &one, da, format->in, SIZE, db, format->in, SIZE, &zero, dc,
                        format->out, SIZE, format->compute, CUBLAS_GEMM_DEFAULT));
        take_back(c, dc, sizeof c);
        for (size_t i = 0; i < SIZE * SIZE; i++)
            assert_near(load(format->out, c, i), product(i % SIZE, i / SIZE), 0);
        ok(cudaFree(da));
        ok(cudaFree(db));
    }
}

/* cuBLASLt: ReLU(A B + bias), with a bias for each row. */
static void test_epilogue(void **state)
{
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
    const float one = 1, zero = 0;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t layout;
    cublasLtHandle_t lt;
    float *bias = numbers(S, SIZE, 12), *dbias = device_copy(bias, SIZE * 4);
    void *da, *db, *dc;

    (void)state;
    make_matrices(CUDA_R_32F);
    da = device_copy(a, sizeof a);
    db = device_copy(b, sizeof b);
    dc = device_copy(c, sizeof c);
    ok(cublasLtCreate(&lt));
    ok(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    ok(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    ok(cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &dbias, sizeof dbias));
    ok(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, SIZE, SIZE, SIZE));
    ok(cublasLtMatmul(lt, operation, &one, da, layout, db, layout, &zero, dc, layout, dc, layout, NULL, NULL, 0, 0));
    take_back(c, dc, sizeof c);
    for (size_t i = 0; i < SIZE * SIZE; i++)
        assert_near(c[i], fmax(0, product(i % SIZE, i / SIZE) + bias[i % SIZE]), 0);
    ok(cublasLtMatrixLayoutDestroy(layout));
    ok(cublasLtMatmulDescDestroy(operation));
    ok(cublasLtDestroy(lt));
    ok(cudaFree(da));
    ok(cudaFree(db));
    ok(cudaFree(dbias));
    free(bias);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_level_1),         cmocka_unit_test(test_gemv), cmocka_unit_test(test_trsm),
        cmocka_unit_test(test_strided_batches), cmocka_unit_test(test_gemm), cmocka_unit_test(test_formats),
        cmocka_unit_test(test_epilogue),
    };

    return cmocka_run_group_tests(tests, create, destroy);
}

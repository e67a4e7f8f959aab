/* SPDX-License-Identifier: Apache-2.0 */
/* cuFFT: complex transforms of one to three dimensions, in batches, forward and back; real ones and their inverses. */
#include "library_test.h"

#include <complex.h>
#include <cufft.h>

enum { MAX_POINTS = 4096 };

static double complex signal[MAX_POINTS];

static void make_signal(size_t n, bool real)
{
    uint64_t seed = n;

    for (size_t i = 0; i < n; i++) {
        signal[i] = next_small(&seed, 8);
        if (!real)
            signal[i] += I * next_small(&seed, 8);
    }
}

/* Element (p, q, r) of the transform of n[0] x n[1] x n[2] numbers, by its definition. */
static double complex transform_at(const double complex *x, const int n[3], int p, int q, int r)
{
    double complex sum = 0;

    for (int i = 0; i < n[0]; i++)
        for (int j = 0; j < n[1]; j++)
            for (int k = 0; k < n[2]; k++) {
                const double turns = (double)(i * p % n[0]) / n[0] + (double)(j * q % n[1]) / n[1] + (double)(k * r % n[2]) / n[2];

                sum += x[(i * n[1] + j) * n[2] + k] * cexp(-2 * M_PI * I * turns);
            }
    return sum;
}

static void assert_near_complex(double complex got, double complex want, double scale)
{
    if (cabs(got - want) <= 1e-5 * scale)
        return;
    print_error("%g%+gi, not %g%+gi\n", creal(got), cimag(got), creal(want), cimag(want));
    fail();
}

/* Compares some elements, since the definition takes n^2 operations. */
static void compare(const float complex *got, const double complex *x, const int n[3], int columns)
{
    const int all = n[0] * n[1] * n[2];

    for (int i = 0; i < 50; i++) {
        const int p = i * 7 % n[0], q = i * 5 % n[1], r = i * 3 % columns;

        assert_near_complex(got[(p * n[1] + q) * columns + r], transform_at(x, n, p, q, r), 8 * sqrt(all) + 8);
    }
}

static const int shapes[][3] = {{1, 1, 8}, {1, 1, 256}, {1, 1, 100}, {1, 1, 127}, {1, 16, 32}, {1, 12, 20}, {8, 4, 16}};

static void test_complex(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const int *n = shapes[s], rank = n[0] > 1 ? 3 : n[1] > 1 ? 2 : 1, all = n[0] * n[1] * n[2], batches = 3;
        static float complex data[MAX_POINTS], back[MAX_POINTS];
        int lengths[3] = {n[3 - rank], rank > 1 ? n[4 - rank] : 0, n[2]};
        cufftHandle plan;
        void *device;

        make_signal((size_t)(all * batches), false);
        for (int i = 0; i < all * batches; i++)
            data[i] = (float complex)signal[i];
        device = device_copy(data, sizeof data);
        ok(cufftPlanMany(&plan, rank, lengths, NULL, 1, all, NULL, 1, all, CUFFT_C2C, batches));
        ok(cufftExecC2C(plan, device, device, CUFFT_FORWARD));
        ok(cudaDeviceSynchronize());
        ok(cudaMemcpy(data, device, sizeof data, cudaMemcpyDeviceToHost));
        for (int batch = 0; batch < batches; batch++)
            compare(data + batch * all, signal + batch * all, n, n[2]);
        ok(cufftExecC2C(plan, device, device, CUFFT_INVERSE));
        take_back(back, device, sizeof back);
        for (int i = 0; i < all * batches; i++)
            assert_near_complex(back[i] / all, signal[i], 8);
        ok(cufftDestroy(plan));
    }
}

static void test_real(void **state)
{
    (void)state;
    for (size_t s = 0; s < 3; s++) {
        const int *n = shapes[s], half = n[2] / 2 + 1;
        static float real[MAX_POINTS];
        static float complex spectrum[MAX_POINTS];
        void *in, *out;
        cufftHandle plan;

        make_signal((size_t)n[2], true);
        for (int i = 0; i < n[2]; i++)
            real[i] = (float)creal(signal[i]);
        in = device_copy(real, sizeof real);
        out = device_copy(spectrum, sizeof spectrum);
        ok(cufftPlan1d(&plan, n[2], CUFFT_R2C, 1));
        ok(cufftExecR2C(plan, in, out));
        ok(cufftDestroy(plan));
        ok(cudaDeviceSynchronize());
        ok(cudaMemcpy(spectrum, out, sizeof spectrum, cudaMemcpyDeviceToHost));
        compare(spectrum, signal, n, half);
        ok(cufftPlan1d(&plan, n[2], CUFFT_C2R, 1));
        ok(cufftExecC2R(plan, out, in));
        ok(cufftDestroy(plan));
        take_back(real, in, sizeof real);
        for (int i = 0; i < n[2]; i++)
            assert_near(real[i] / (float)n[2], creal(signal[i]), 1e-4);
        ok(cudaFree(out));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complex),
        cmocka_unit_test(test_real),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Thrust's and CUB's algorithms against those of the C++ standard library: `algorithms [COUNT [NAME]]` runs one algorithm, or all, on
 * COUNT random elements. The element is an unsigned integer of ELEMENT_BYTES. */
#include <cub/device/device_histogram.cuh>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/merge.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "check.h" /* last: its macros are common words */

#ifndef ELEMENT_BYTES
#define ELEMENT_BYTES 4
#endif

template <int bytes> struct unsigned_of;
template <> struct unsigned_of<1> { using type = std::uint8_t; };
template <> struct unsigned_of<2> { using type = std::uint16_t; };
template <> struct unsigned_of<4> { using type = std::uint32_t; };
template <> struct unsigned_of<8> { using type = std::uint64_t; };
using element = unsigned_of<ELEMENT_BYTES>::type;
using elements = std::vector<element>;
using on_device = thrust::device_vector<element>;

/* Values of all bits, or, with `kinds`, one of so many. */
static elements random_elements(std::size_t count, unsigned kinds = 0)
{
    static std::mt19937_64 random(20);
    elements out(count);

    for (element &value : out)
        value = (element)(kinds ? random() % kinds : random());
    return out;
}

/* Short runs of equal values. */
static elements random_runs(std::size_t count)
{
    return random_elements(count, 3);
}

template <class T> static void same(const thrust::device_vector<T> &device, std::size_t count, const std::vector<T> &expected)
{
    std::vector<T> got(count);

    check(count == expected.size());
    thrust::copy(device.begin(), device.begin() + count, got.begin());
    check(got == expected);
}

static void sort(std::size_t count)
{
    elements host = random_elements(count);
    on_device device = host;

    thrust::sort(device.begin(), device.end());
    std::sort(host.begin(), host.end());
    same(device, count, host);
}

/* The values are the places, so that the order of equal keys is seen. */
static void sort_by_key(std::size_t count)
{
    const elements host = random_elements(count, 100);
    elements sorted(count);
    std::vector<std::uint32_t> places(count);
    on_device keys = host;
    thrust::device_vector<std::uint32_t> values(count);

    std::iota(places.begin(), places.end(), 0u);
    thrust::copy(places.begin(), places.end(), values.begin());
    thrust::stable_sort_by_key(keys.begin(), keys.end(), values.begin());
    std::stable_sort(places.begin(), places.end(), [&](std::uint32_t a, std::uint32_t b) { return host[a] < host[b]; });
    for (std::size_t i = 0; i < count; i++)
        sorted[i] = host[places[i]];
    same(keys, count, sorted);
    same(values, count, places);
}

struct by_last_digit {
    __host__ __device__ bool operator()(element a, element b) const
    {
        return a % 10 < b % 10;
    }
};

static void sort_by_comparison(std::size_t count)
{
    elements host = random_elements(count);
    on_device device = host;

    thrust::stable_sort(device.begin(), device.end(), by_last_digit());
    std::stable_sort(host.begin(), host.end(), by_last_digit());
    same(device, count, host);
}

static void merge(std::size_t count)
{
    elements a = random_elements(count / 3), b = random_elements(count - count / 3), expected(count);
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    const on_device device_a = a, device_b = b;
    on_device out(count);

    thrust::merge(device_a.begin(), device_a.end(), device_b.begin(), device_b.end(), out.begin());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), expected.begin());
    same(out, count, expected);
}

static void unique(std::size_t count)
{
    elements host = random_runs(count);
    on_device device = host;
    const std::size_t left = (std::size_t)(thrust::unique(device.begin(), device.end()) - device.begin());

    host.erase(std::unique(host.begin(), host.end()), host.end());
    same(device, left, host);
}

static void reduce_by_key(std::size_t count)
{
    const elements keys = random_runs(count), values = random_elements(count);
    const on_device device_keys = keys, device_values = values;
    on_device out_keys(count), out_sums(count);
    elements expected_keys, expected_sums;

    for (std::size_t i = 0; i < count; i++) {
        if (i && keys[i] == keys[i - 1]) {
            expected_sums.back() = (element)(expected_sums.back() + values[i]);
        } else {
            expected_keys.push_back(keys[i]);
            expected_sums.push_back(values[i]);
        }
    }
    const auto end = thrust::reduce_by_key(device_keys.begin(), device_keys.end(), device_values.begin(), out_keys.begin(),
                                           out_sums.begin());
    same(out_keys, (std::size_t)(end.first - out_keys.begin()), expected_keys);
    same(out_sums, (std::size_t)(end.second - out_sums.begin()), expected_sums);
}

static void scan(std::size_t count)
{
    elements host = random_elements(count);
    on_device device = host;

    thrust::inclusive_scan(device.begin(), device.end(), device.begin());
    std::partial_sum(host.begin(), host.end(), host.begin(), [](element a, element b) { return (element)(a + b); });
    same(device, count, host);
}

static void histogram(std::size_t count)
{
    const unsigned bins = 64;
    const elements host = random_elements(count, bins);
    const on_device device = host;
    thrust::device_vector<unsigned> out(bins);
    std::vector<unsigned> expected(bins);
    std::size_t room_bytes = 0;
    thrust::device_vector<unsigned char> room;

    for (int pass = 0; pass < 2; pass++) { /* the first one returns the size of the room */
        room.resize(room_bytes);
        ok(cub::DeviceHistogram::HistogramEven(pass ? thrust::raw_pointer_cast(room.data()) : nullptr, room_bytes,
                                               thrust::raw_pointer_cast(device.data()), thrust::raw_pointer_cast(out.data()), (int)bins + 1,
                                               (element)0, (element)bins, (int)count));
    }
    ok(cudaDeviceSynchronize());
    for (element value : host)
        expected[value]++;
    same(out, bins, expected);
}

static const struct {
    const char *name;
    void (*run)(std::size_t count);
} algorithms[] = {
    {"sort", sort},     {"sort_by_key", sort_by_key},     {"sort_by_comparison", sort_by_comparison}, {"merge", merge},
    {"unique", unique}, {"reduce_by_key", reduce_by_key}, {"scan", scan},                             {"histogram", histogram},
};

/* The judges (tests/judge) use a separate folder for kernels of libraries, which need more registers than small GPUs have. */
static void separate_from_judges()
{
    const char *kept = std::getenv("CUTTLE_PTX_DIR");

    if (!kept || !*kept)
        return;
    const std::filesystem::path folder = std::filesystem::path(kept) / "libraries";

    std::filesystem::create_directory(folder);
    setenv("CUTTLE_PTX_DIR", folder.c_str(), 1);
}

int main(int argc, char **argv)
{
    const std::size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 10000;
    int n_run = 0;

    separate_from_judges();
    for (const auto &algorithm : algorithms) {
        if (argc > 2 && std::strcmp(argv[2], algorithm.name))
            continue;
        const auto begin = std::chrono::steady_clock::now();

        algorithm.run(count);
        std::printf("%-20s %zu elements of %d bytes: %.2f s\n", algorithm.name, count, ELEMENT_BYTES,
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
        n_run++;
    }
    check(n_run);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* `cuttle workarounds`, which writes docs/workarounds.md. */
#include "cuttle_workarounds.h"

#include "core/device/workarounds.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    unsigned drivers; /* the first row that is part of a set names that part */
    const char *name;
} names[] = {
    {CT_DRIVERS_VULKAN, "every Vulkan driver"},
    {CT_DRIVER_NVIDIA, "NVIDIA (Vulkan)"},
    {CT_DRIVER_LAVAPIPE, "lavapipe"},
    {CT_DRIVER_MESA, "Mesa's other drivers"},
    {CT_DRIVER_OTHER_VULKAN, "other Vulkan drivers"},
    {CT_DRIVER_INTEL_CL_CPU, "Intel's OpenCL runtime for CPUs"},
    {CT_DRIVER_INTEL_CL_GPU, "Intel's OpenCL runtime for GPUs"},
    {CT_DRIVER_POCL, "PoCL"},
    {CT_DRIVER_OTHER_OPENCL, "other OpenCL platforms"},
};

static void print_drivers(unsigned drivers)
{
    const char *separator = "";

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!names[i].drivers || (drivers & names[i].drivers) != names[i].drivers)
            continue;
        printf("%s%s", separator, names[i].name);
        drivers &= ~names[i].drivers;
        separator = ", ";
    }
}

static void print_versions(const struct ct_workaround *row)
{
    if (!*row->first && !*row->last)
        printf("all");
    else
        printf("%s to %s", *row->first ? row->first : "the first", *row->last ? row->last : "the newest");
}

int command_workarounds(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("# Faults of drivers\n\n"
           "Made by `cuttle workarounds` from include/cuttle/workarounds.def; `cmake --build build --target docs_workarounds` writes it anew, and\n"
           "a test sees to it that it is up to date.\n\n"
           "Cuttle works around these faults on the drivers that are named, in the versions that are named (\"all\": no version without the fault is\n"
           "known). `cuttle info` shows what is in force on each device. `CUTTLE_WORKAROUNDS=none` switches all of them off, `-NAME` one of\n"
           "them, and `NAME,...` switches on those that are named and no others, on any driver. A new driver still has a fault if the test of its\n"
           "row fails with the workaround switched off; if it passes, the row gets a last version.\n\n"
           "| name | drivers | versions | fault | seen on; more in | test |\n| --- | --- | --- | --- | --- | --- |\n");
    for (unsigned i = 0; i < CT_WORKAROUND_COUNT; i++) {
        const struct ct_workaround *row = ct_workaround((enum ct_workaround_index)i);

        printf("| %s | ", row->name);
        print_drivers(row->drivers);
        printf(" | ");
        print_versions(row);
        printf(" | %s | %s | %s |\n", row->fault, row->proof, row->test);
    }
    return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of devices, and the text by which the helper program tells them:
 *
 *   devices <number>
 *   <member> <value>      for each device the rows of facts.def
 *   end
 *
 * When it is asked for the memory of a device it prints "memory <free bytes> <total bytes>" and "end". */
#ifndef CT_NVML_FACTS_H
#define CT_NVML_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define NVML_HELPER "cuttle-nvml-helper" /* the file name of the program */
#define NVML_HELPER_MEMORY "memory"      /* its first argument; the second one is the index of a device */
enum { NVML_MAX_DEVICES = 64 };

struct nvml_facts {
#define TEXT(member, size) char member[size];
#define NUMBER(member) uint64_t member;
#include "facts.def"
};

void nvml_facts_write(const struct nvml_facts *devices, unsigned count, FILE *to);
void nvml_memory_write(uint64_t free_bytes, uint64_t total_bytes, FILE *to);

/* Parse what these print. `text` is changed. False: it is not complete, or something else. */
bool nvml_facts_read(char *text, struct nvml_facts out[NVML_MAX_DEVICES], unsigned *out_count);
bool nvml_memory_read(char *text, uint64_t *out_free_bytes, uint64_t *out_total_bytes);

#endif

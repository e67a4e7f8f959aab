/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose host code accesses memory that a stream still uses: check_hosts NAME [good]. HOST(name, operation of the host, command, its operation). Each has
 * a function of its name, in which the access is made. */
#ifndef CUTTLE_TESTS_HOSTS_H
#define CUTTLE_TESTS_HOSTS_H

#define HOSTS                                                                                                                              \
    HOST(read_of_copy, "read", "a copy", "write")                                                                                          \
    HOST(write_of_source, "write", "a copy", "read")                                                                                       \
    HOST(write_of_copy, "write", "a copy", "write")                                                                                        \
    HOST(read_of_row, "read", "a copy", "write")                                                                                           \
    HOST(read_of_fill, "read", "a fill", "write")                                                                                          \
    HOST(read_of_managed, "read", "kernel store", "write")                                                                                 \
    HOST(write_of_managed, "write", "kernel load", "read")                                                                                 \
    HOST(read_of_mapped, "read", "kernel store", "write")                                                                                  \
    HOST(read_of_registered, "read", "kernel store", "write")                                                                              \
    HOST(read_of_variable, "read", "kernel store_variable", "write")                                                                       \
    HOST(read_of_sum, "read", "kernel add", "write")                                                                                       \
    HOST(read_of_bytes, "read", "kernel store_bytes", "write")                                                                             \
    HOST(read_of_vector, "read", "kernel store_vector", "write")                                                                           \
    HOST(read_in_graph, "read", "kernel store", "write")                                                                                   \
    HOST(wrong_stream, "read", "kernel store", "write")                                                                                    \
    HOST(wrong_event, "read", "a copy", "write")

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that are stored with file descriptors (backend_vk/size_tag.c): many open files of one node, as drivers export them, each with its own
 * size, which is read through duplicates and in another process. */
#include "backend_vk/size_tag.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define UNIT CT_VK_SIZE_TAG_UNIT
#define FILES 60

static int open_node(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC); /* a character device, as a driver exports */

    assert_true(fd >= 0);
    return fd;
}

static void each_open_file_has_its_size(void **state)
{
    int files[FILES], copy;

    (void)state;
    for (unsigned i = 0; i < FILES; i++) {
        files[i] = open_node();
        assert_int_equal(ct_vk_size_tag_get(files[i]), 0);
        assert_true(ct_vk_size_tag_set(files[i], (i % 7 + 1) * UNIT)); /* some have the same size */
    }
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(ct_vk_size_tag_get(files[i]), (i % 7 + 1) * UNIT);
    copy = dup(files[5]);
    close(files[5]);
    assert_int_equal(ct_vk_size_tag_get(copy), 6 * UNIT);
    assert_true(ct_vk_size_tag_set(copy, 6 * UNIT)); /* again */
    assert_false(ct_vk_size_tag_set(copy, 7 * UNIT));
    close(copy);
    for (unsigned i = 0; i < FILES; i++)
        if (i != 5)
            close(files[i]);
}

static void another_process_is_reported(void **state)
{
    int fd = open_node(), other = open_node(), status = -1;
    pid_t child;

    (void)state;
    assert_true(ct_vk_size_tag_set(fd, 1000 * UNIT));
    assert_true(ct_vk_size_tag_set(other, 2000 * UNIT));
    child = fork();
    if (child == 0)
        _exit(ct_vk_size_tag_get(fd) == 1000 * UNIT && ct_vk_size_tag_get(other) == 2000 * UNIT ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(fd);
    close(other);
}

static void no_tag_for_no_size(void **state)
{
    int fd = open_node();

    (void)state;
    assert_false(ct_vk_size_tag_set(fd, 0));
    assert_false(ct_vk_size_tag_set(fd, UNIT / 2));
    assert_false(ct_vk_size_tag_set(fd, UNIT << 24));
    assert_true(ct_vk_size_tag_set(fd, UNIT * ((1 << 24) - 1)));
    assert_int_equal(ct_vk_size_tag_get(fd), UNIT * ((1 << 24) - 1));
    close(fd);
    assert_false(ct_vk_size_tag_set(fd, UNIT)); /* closed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_open_file_has_its_size),
        cmocka_unit_test(another_process_is_reported),
        cmocka_unit_test(no_tag_for_no_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

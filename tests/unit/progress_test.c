/* SPDX-License-Identifier: Apache-2.0 */
/* The log says that a compilation takes long while it still does, and then how long it took; it says nothing of short ones. */
#include "core/base/log.h"
#include "core/base/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/progress_XXXXXX";

static int open_log(void **state)
{
    const int file = mkstemp(path);

    (void)state;
    if (file < 0 || setenv("CUTTLE_LOG", "info", 1) != 0 || setenv("CUTTLE_LOG_FILE", path, 1) != 0)
        return -1;
    ct_log_init();
    return close(file);
}

static int remove_log(void **state)
{
    (void)state;
    return unlink(path);
}

/* The text is valid until the next call. */
static const char *logged(void)
{
    static char text[4096];
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static void short_ones_are_not_mentioned(void **state)
{
    struct ct_progress progress;

    (void)state;
    for (int i = 0; i < 100; i++) {
        ct_progress_begin(&progress, "a compiler", "quick");
        ct_progress_end(&progress);
    }
    assert_null(strstr(logged(), "quick"));
}

static void a_long_one_is_mentioned_before_it_ends(void **state)
{
    struct ct_progress progress;

    (void)state;
    ct_progress_begin(&progress, "a compiler", "slow");
    while (!strstr(logged(), "a compiler has been compiling kernel slow for 2 s")) /* the test's time limit ends it otherwise */
        usleep(10000);
    assert_null(strstr(logged(), "compiled"));
    ct_progress_end(&progress);
    assert_non_null(strstr(logged(), "a compiler compiled kernel slow in "));
}

static void nobody_watches_without_the_level(void **state)
{
    struct ct_progress progress;

    (void)state;
    atomic_store(&ct_log_threshold, CT_LOG_WARN);
    ct_progress_begin(&progress, "a compiler", "unwatched");
    assert_false(progress.is_watched);
    ct_progress_end(&progress);
    assert_null(strstr(logged(), "unwatched"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_ones_are_not_mentioned),
        cmocka_unit_test(a_long_one_is_mentioned_before_it_ends),
        cmocka_unit_test(nobody_watches_without_the_level),
    };

    return cmocka_run_group_tests(tests, open_log, remove_log);
}

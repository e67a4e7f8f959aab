/* SPDX-License-Identifier: Apache-2.0 */
/* Handles and memory of every kind are destroyed and made again by some threads while others use them. CUDA leaves that undefined; here every
 * call works or gives an error that says so, and nothing crashes, leaks or is used after it is freed (run it under the sanitizers).
 *
 *     lifetimes_test [SECONDS]
 *
 * Without an argument it runs for two seconds; ten minutes are the long form. A seed is printed; it determines what each thread does, but not
 * how the threads' calls interleave. */
#include "lifetime_kinds.h"
#include "races_on_purpose.h"

#include <time.h>
#include <unistd.h>

enum { USERS = 3, DESTROYERS = 2, SECONDS = 2 };

static atomic_bool over;
static _Atomic uint64_t uses, destroyed;
static unsigned long seconds = SECONDS;

static void *use_all(void *argument)
{
    struct user *user = argument;
    uint64_t values[MAX_VALUES];

    check(&kinds[0], "starting a user", 0, start_user(user));
    while (!atomic_load(&over)) {
        struct slot *slot = &slots[number(user, SLOTS)];
        unsigned way = (unsigned)number(user, slot->kind->ways);

        if (!is_there(slot->kind))
            continue;
        copy_values(slot, values);
        if (values[0])
            check(slot->kind, "use", way, slot->kind->use(user, values, way));
        atomic_fetch_add(&uses, 1);
    }
    check(&kinds[0], "ending a user", 0, cuStreamSynchronize(user->stream));
    return NULL;
}

static void *destroy_all(void *argument)
{
    struct user *user = argument;

    check(&kinds[0], "starting a destroyer", 0, start_user(user));
    while (!atomic_load(&over)) {
        struct slot *slot = &slots[number(user, SLOTS)];

        if (!is_there(slot->kind))
            continue;
        change_slot(slot, user);
        atomic_fetch_add(&destroyed, 1);
    }
    return NULL;
}

static void test_every_pair(void **state)
{
    static struct user users[USERS + DESTROYERS];
    pthread_t threads[USERS + DESTROYERS];
    const char *given = getenv("CUTTLE_TEST_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);

    if (!on_cuttle())
        skip(); /* CUDA leaves it undefined */
    prepare_slots();
    for (unsigned i = 0; i < USERS + DESTROYERS; i++) {
        users[i].context = *state;
        users[i].random = seed * (USERS + DESTROYERS) + i;
        assert_int_equal(pthread_create(&threads[i], NULL, i < USERS ? use_all : destroy_all, &users[i]), 0);
    }
    for (unsigned long i = 0; i < seconds && !atomic_load(&unexpected); i++)
        sleep(1);
    atomic_store(&over, true);
    for (unsigned i = 0; i < USERS + DESTROYERS; i++)
        pthread_join(threads[i], NULL);
    print_message("seed %llu: %llu uses, %llu destructions\n", (unsigned long long)seed, (unsigned long long)uses,
                  (unsigned long long)destroyed);
    assert_int_equal(unexpected, 0);
    empty_slots(&users[0]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair),
    };

    if (argc > 1)
        seconds = strtoul(argv[1], NULL, 0);
    return cmocka_run_group_tests(tests, with_context, without_context);
}

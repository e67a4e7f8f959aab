/* SPDX-License-Identifier: Apache-2.0 */
/* Module management, and the attributes of functions. */
#include "api_test.h"

#include "api_kernels.h"

#include <pthread.h>
#include <unistd.h>

/* Variables of every kind, and one that contains addresses of others. */
static const char variables[] = PTX_HEADER ".visible .global .align 4 .u32 answer = 42;\n"
                                           ".visible .global .align 8 .u64 table[3] = { 1, 0x8000000000000000, 3 };\n"
                                           ".visible .const .align 4 .f32 half = 0f3F000000;\n"
                                           ".visible .global .align 1 .b8 text[6] = { 104, 101, 108, 108, 111, 0 };\n"
                                           ".visible .global .align 256 .b8 zeros[1000];\n"
                                           ".visible .global .align 8 .u64 pointers[2] = { generic(answer), generic(table) + 16 };\n"
                                           ".global .align 4 .u32 hidden = 7;\n" PTX_NOTHING PTX_RAMP;

static CUmodule load(const char *ptx)
{
    CUmodule module = NULL;

    ok(cuModuleLoadData(&module, ptx));
    return module;
}

static void variables_have_address_size_and_value(void **state)
{
    CUmodule module = load(variables);
    CUdeviceptr answer, table, address;
    size_t bytes;
    uint32_t word;
    uint64_t longs[3];
    float real;
    char text[1000], none[1000] = {0};

    (void)state;
    ok(cuModuleGetGlobal(&answer, &bytes, module, "answer"));
    assert_int_equal(bytes, 4);
    ok(cuMemcpyDtoH(&word, answer, 4));
    assert_int_equal(word, 42);
    ok(cuModuleGetGlobal(&table, &bytes, module, "table"));
    assert_int_equal(bytes, 24);
    ok(cuMemcpyDtoH(longs, table, 24));
    assert_true(longs[0] == 1 && longs[1] == 0x8000000000000000 && longs[2] == 3);
    ok(cuModuleGetGlobal(&address, &bytes, module, "half"));
    ok(cuMemcpyDtoH(&real, address, 4));
    assert_true(real == 0.5f);
    ok(cuModuleGetGlobal(&address, &bytes, module, "text"));
    assert_int_equal(bytes, 6);
    ok(cuMemcpyDtoH(text, address, 6));
    assert_string_equal(text, "hello");
    ok(cuModuleGetGlobal(&address, &bytes, module, "zeros"));
    assert_int_equal(bytes, 1000);
    assert_int_equal(address % 256, 0);
    ok(cuMemcpyDtoH(text, address, 1000));
    assert_memory_equal(text, none, 1000);
    ok(cuModuleGetGlobal(&address, NULL, module, "hidden")); /* although it is not .visible */
    ok(cuMemcpyDtoH(&word, address, 4));
    assert_int_equal(word, 7);
    ok(cuModuleGetGlobal(&address, &bytes, module, "pointers"));
    ok(cuMemcpyDtoH(longs, address, 16));
    assert_true(longs[0] == answer && longs[1] == table + 16);
    ok(cuModuleUnload(module));
}

static void a_variable_can_be_written(void **state)
{
    CUmodule first = load(variables), second = load(variables);
    CUdeviceptr a, b;
    uint32_t word = 99;

    (void)state;
    ok(cuModuleGetGlobal(&a, NULL, first, "answer"));
    ok(cuModuleGetGlobal(&b, NULL, second, "answer"));
    assert_true(a != b);
    ok(cuMemcpyHtoD(a, &word, 4));
    ok(cuMemcpyDtoH(&word, b, 4));
    assert_int_equal(word, 42); /* each module has its own variable */
    ok(cuMemcpyDtoH(&word, a, 4));
    assert_int_equal(word, 99);
    ok(cuModuleUnload(second));
    ok(cuMemcpyDtoH(&word, a, 4));
    ok(cuModuleUnload(first));
    assert_true(cuMemcpyDtoH(&word, a, 4) == CUDA_ERROR_INVALID_VALUE);
}

static void what_is_not_there_is_not_found(void **state)
{
    CUmodule module = load(variables);
    CUfunction function;
    CUdeviceptr address;
    size_t bytes;

    (void)state;
    gives(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "no such kernel"));
    gives(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "answer"));
    gives(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&address, &bytes, module, "no such variable"));
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal(&address, &bytes, module, "nothing")); /* a kernel */
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&function, module, ""));
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal(NULL, NULL, module, "answer"));
    if (on_cuttle()) {
        gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(NULL, module, "nothing"));
        gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&function, module, NULL));
    }
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetGlobal(&address, &bytes, module, NULL));
    ok(cuModuleUnload(module));
}

static void handles_that_are_no_modules(void **state)
{
    CUmodule module = load(PTX_HEADER PTX_NOTHING);
    CUfunction function;

    (void)state;
    ok(cuModuleUnload(module));
    gives(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    gives(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&function, NULL, "nothing"));
}

static void foreign_handles_do_no_harm(void **state)
{
    CUmodule module;
    CUfunction function;
    CUdeviceptr address;
    unsigned count;
    int value;

    (void)state;
    if (!on_cuttle())
        skip();
    module = load(PTX_HEADER PTX_NOTHING);
    ok(cuModuleGetFunction(&function, module, "nothing"));
    ok(cuModuleUnload(module));
    gives(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&function, module, "nothing"));
    gives(CUDA_ERROR_INVALID_HANDLE, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    gives(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    gives(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(MADE_UP(CUmodule)));
    gives(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload((CUmodule)function));
    gives(CUDA_ERROR_INVALID_HANDLE, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, MADE_UP(CUfunction)));
    gives(CUDA_ERROR_INVALID_HANDLE, cuFuncSetAttribute(MADE_UP(CUfunction), CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 1));
    gives(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunctionCount(&count, MADE_UP(CUmodule)));
    gives(CUDA_ERROR_INVALID_HANDLE, cuModuleGetGlobal(&address, NULL, MADE_UP(CUmodule), "answer"));
}

static void functions_are_counted_and_listed(void **state)
{
    CUmodule module = load(variables), owner;
    CUfunction list[4] = {NULL, NULL, NULL, NULL}, nothing, ramp;
    unsigned count;
    const char *name;

    (void)state;
    ok(cuModuleGetFunctionCount(&count, module));
    assert_int_equal(count, 2);
    ok(cuModuleEnumerateFunctions(list, 4, module));
    ok(cuModuleGetFunction(&nothing, module, "nothing"));
    ok(cuModuleGetFunction(&ramp, module, "ramp"));
    assert_true((list[0] == nothing && list[1] == ramp) || (list[0] == ramp && list[1] == nothing));
    assert_null(list[2]);
    ok(cuFuncGetName(&name, ramp));
    assert_string_equal(name, "ramp");
    ok(cuFuncGetModule(&owner, ramp));
    assert_ptr_equal(owner, module);
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunctionCount(NULL, module));
    ok(cuModuleUnload(module));
}

static void parameters_are_described(void **state)
{
    static const size_t offsets[] = {0, 8, 16, 20, 24, 32}, sizes[] = {1, 8, 2, 4, 8, 12};
    CUmodule module = load(PTX_HEADER PTX_PARAMS PTX_NOTHING);
    CUfunction function;
    size_t offset, size;

    (void)state;
    ok(cuModuleGetFunction(&function, module, "params"));
    for (size_t i = 0; i < 6; i++) {
        ok(cuFuncGetParamInfo(function, i, &offset, &size));
        assert_int_equal(offset, offsets[i]);
        assert_int_equal(size, sizes[i]);
    }
    ok(cuFuncGetParamInfo(function, 1, &offset, NULL));
    gives(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(function, 6, &offset, &size));
    ok(cuModuleGetFunction(&function, module, "nothing"));
    gives(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(function, 0, &offset, &size));
    ok(cuModuleUnload(module));
}

static int attribute(CUfunction function, CUfunction_attribute which)
{
    int value = -1000;

    ok(cuFuncGetAttribute(&value, which, function));
    return value;
}

static void function_attributes(void **state)
{
    CUmodule module = load(PTX_HEADER PTX_SHARED("room", 1024) PTX_BOUNDED PTX_REQUIRED);
    CUfunction room, bounded, required;
    int most, per_block;

    (void)state;
    ok(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
    ok(cuDeviceGetAttribute(&per_block, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 0));
    ok(cuModuleGetFunction(&room, module, "room"));
    ok(cuModuleGetFunction(&bounded, module, "bounded"));
    ok(cuModuleGetFunction(&required, module, "required"));
    assert_int_equal(attribute(room, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), most);
    assert_int_equal(attribute(bounded, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 64);
    if (on_cuttle()) /* NVIDIA's driver 580 ignores .reqntid */
        assert_int_equal(attribute(required, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 64);
    assert_int_equal(attribute(room, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1024);
    assert_int_equal(attribute(bounded, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 0);
    assert_int_equal(attribute(room, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), per_block - 1024);
    assert_int_equal(attribute(room, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 0);
    assert_int_equal(attribute(room, CU_FUNC_ATTRIBUTE_PTX_VERSION), 50);
    assert_in_range(attribute(room, CU_FUNC_ATTRIBUTE_NUM_REGS), 1, 255);
    assert_int_equal(attribute(room, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT), -1);
    for (int i = 0; i < 16; i++)
        attribute(room, (CUfunction_attribute)i);
    gives(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&most, (CUfunction_attribute)1000, room));
    gives(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, room));
    gives(CUDA_ERROR_INVALID_HANDLE, cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
    ok(cuModuleUnload(module));
}

/* A kernel that needs the given number of registers: it loads all words, in order, before it stores any. */
static void write_holder(char *out, size_t size, unsigned words)
{
    size_t n = (size_t)snprintf(out, size,
                                PTX_HEADER ".visible .entry holds(.param .u64 at)\n{\n    .reg .b32 %%r<%u>;\n    .reg .b64 %%d;\n"
                                           "    ld.param.u64 %%d, [at];\n",
                                words);

    for (unsigned i = 0; i < words; i++)
        n += (size_t)snprintf(out + n, size - n, "    ld.volatile.global.u32 %%r%u, [%%d + %u];\n", i, 4 * i);
    for (unsigned i = 0; i < words; i++)
        n += (size_t)snprintf(out + n, size - n, "    st.volatile.global.u32 [%%d + %u], %%r%u;\n", 4 * i, words - 1 - i);
    snprintf(out + n, size - n, "    ret;\n}\n");
}

/* Never 0, since programs divide by it; available before the first launch; and larger where a thread keeps more values. */
static void registers_of_a_thread(void **state)
{
    static char ptx[16384];
    int blocks, few, many;
    CUfunction function;
    CUmodule module;

    (void)state;
    write_holder(ptx, sizeof ptx, 4);
    module = load(ptx);
    ok(cuModuleGetFunction(&function, module, "holds"));
    few = attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS);
    ok(cuModuleUnload(module));
    write_holder(ptx, sizeof ptx, 40);
    module = load(ptx);
    ok(cuModuleGetFunction(&function, module, "holds"));
    many = attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS);
    assert_in_range(few, 4, 32);
    assert_in_range(many, 40, 64);
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 0));
    assert_true(blocks >= 1); /* the reported number of registers does not prevent any block from running */
    ok(cuModuleUnload(module));
}

static void function_attributes_that_can_be_set(void **state)
{
    CUmodule module = load(PTX_HEADER PTX_SHARED("room", 1024));
    CUfunction room;
    int opt_in;

    (void)state;
    ok(cuDeviceGetAttribute(&opt_in, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
    ok(cuModuleGetFunction(&room, module, "room"));
    ok(cuFuncSetAttribute(room, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, opt_in - 1024));
    assert_int_equal(attribute(room, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), opt_in - 1024);
    gives(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(room, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, opt_in - 1023));
    gives(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(room, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1));
    assert_int_equal(attribute(room, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), opt_in - 1024);
    ok(cuFuncSetAttribute(room, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100));
    assert_int_equal(attribute(room, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT), 100);
    gives(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(room, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101));
    gives(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(room, CU_FUNC_ATTRIBUTE_NUM_REGS, 32));
    ok(cuFuncSetCacheConfig(room, CU_FUNC_CACHE_PREFER_SHARED));
    ok(cuModuleUnload(module));
}

static void functions_load_when_they_are_needed(void **state)
{
    CUmodule module = load(PTX_HEADER PTX_RAMP);
    CUfunction ramp;
    CUfunctionLoadingState loaded;
    CUmoduleLoadingMode mode;

    (void)state;
    ok(cuModuleGetLoadingMode(&mode));
    assert_true(mode == CU_MODULE_LAZY_LOADING || mode == CU_MODULE_EAGER_LOADING);
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_VALUE, cuModuleGetLoadingMode(NULL));
    ok(cuModuleGetFunction(&ramp, module, "ramp"));
    ok(cuFuncIsLoaded(&loaded, ramp));
    ok(cuFuncLoad(ramp));
    ok(cuFuncIsLoaded(&loaded, ramp));
    assert_int_equal(loaded, CU_FUNCTION_LOADING_STATE_LOADED);
    ok(cuModuleUnload(module));
}

static void ptx_that_is_none(void **state)
{
    static const char *const texts[] = {
        PTX_HEADER ".visible .entry broken(\n",
        PTX_HEADER ".visible .entry broken()\n{\n    this is no instruction;\n}\n",
        PTX_HEADER ".visible .entry broken()\n{\n    add.u32 %r1, %r2, %r3;\n    ret;\n}\n", /* no registers with these numbers */
        PTX_HEADER "}\n",
        PTX_HEADER ".global .u32 x = ;\n",
    };
    static const char *const no_images[] = {"", "hello world\n", ".target sm_50\n.address_size 64\n" PTX_NOTHING};
    CUmodule module = MADE_UP(CUmodule);

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        gives(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, texts[i]));
        assert_ptr_equal(module, MADE_UP(CUmodule));
    }
    for (size_t i = 0; i < sizeof no_images / sizeof *no_images; i++)
        gives(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, no_images[i]));
    gives(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, cuModuleLoadData(&module, ".version 99.0\n.target sm_50\n.address_size 64\n" PTX_NOTHING));
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(NULL, variables));
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
    ok(cuModuleUnload(load("//\n// by hand\n//\n/* or\n not */ " PTX_HEADER PTX_NOTHING))); /* everything still works */
}

static void errors_have_line_and_column(void **state)
{
    char errors[1000], infos[1000] = "x";
    float wall_time = -1;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_WALL_TIME,        CU_JIT_OPTIMIZATION_LEVEL};
    void *values[] = {errors, (void *)sizeof errors, infos, (void *)sizeof infos, NULL, (void *)3};
    CUmodule module;

    (void)state;
    gives(CUDA_ERROR_INVALID_PTX,
          cuModuleLoadDataEx(&module, PTX_HEADER ".visible .entry broken()\n{\n  frobnicate.u32 %r1;\n}\n", 6, options, values));
    assert_non_null(strstr(errors, "line 6"));
    assert_int_equal((size_t)values[1], strlen(errors));
    memcpy(&wall_time, &values[4], sizeof wall_time);
    assert_true(wall_time >= 0 && wall_time < 60000);
}

static void a_full_log_is_cut(void **state)
{
    char errors[20];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER}; /* in either order */
    void *values[] = {(void *)(sizeof errors - 4), errors};
    CUmodule module;

    (void)state;
    memset(errors, '#', sizeof errors);
    gives(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, PTX_HEADER "nonsense\n", 2, options, values));
    assert_memory_equal(errors + 16, "####", 4);
    assert_true(strlen(errors) < 16);
}

static void jit_options_are_checked(void **state)
{
    CUjit_option unknown = (CUjit_option)1000, level = CU_JIT_OPTIMIZATION_LEVEL;
    CUjit_option several[] = {CU_JIT_MAX_REGISTERS, CU_JIT_LOG_VERBOSE, CU_JIT_GENERATE_DEBUG_INFO, CU_JIT_TARGET_FROM_CUCONTEXT};
    void *values[] = {(void *)32, (void *)1, NULL, NULL}, *five = (void *)5, *none = NULL;
    CUmodule module;

    (void)state;
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&module, variables, 1, &unknown, &none));
    ok(cuModuleLoadDataEx(&module, variables, 1, &level, &five)); /* the level does not exist, but it is only a hint */
    ok(cuModuleUnload(module));
    if (on_cuttle())
        gives(CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&module, variables, 1, NULL, NULL));
    ok(cuModuleLoadDataEx(&module, variables, 4, several, values));
    ok(cuModuleUnload(module));
}

static void images_of_other_kinds(void **state)
{
    static const union {
        uint32_t words[16];
        char bytes[64];
    } elf = {.bytes = "\177ELF\2\1\1"};
    CUmodule module;
    CUresult r = cuModuleLoadData(&module, &elf);

    (void)state;
    assert_true(r == CUDA_ERROR_NO_BINARY_FOR_GPU || r == CUDA_ERROR_INVALID_IMAGE); /* the header alone is not a whole file */
}

static void files_are_loaded(void **state)
{
    char name[] = "/tmp/cuttle-test-XXXXXX";
    int fd = mkstemp(name);
    CUmodule module;
    CUfunction function;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, variables, sizeof variables - 1), sizeof variables - 1); /* without a NUL in the file */
    close(fd);
    ok(cuModuleLoad(&module, name));
    ok(cuModuleGetFunction(&function, module, "ramp"));
    ok(cuModuleUnload(module));
    unlink(name);
    gives(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, name));
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleLoad(NULL, name));
    gives(CUDA_ERROR_INVALID_VALUE, cuModuleLoad(&module, NULL));
}

static void modules_need_a_context(void **state)
{
    CUcontext context;
    CUmodule module;

    (void)state;
    ok(cuCtxPopCurrent(&context));
    gives(CUDA_ERROR_INVALID_CONTEXT, cuModuleLoadData(&module, variables));
    ok(cuCtxPushCurrent(context));
}

static void a_context_takes_its_modules_along(void **state)
{
    CUcontext context;
    CUmodule module;
    CUfunction function;
    int value;

    (void)state;
    ok(cuCtxCreate(&context, NULL, 0, 0));
    module = load(variables);
    ok(cuModuleGetFunction(&function, module, "nothing"));
    ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ok(cuCtxDestroy(context));
    if (!on_cuttle())
        return; /* NVIDIA's driver returns CONTEXT_IS_DESTROYED, and may crash */
    gives(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    gives(CUDA_ERROR_INVALID_HANDLE, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
}

#define THREADS 4

struct compile {
    CUcontext context;
    CUfunction function;
    CUresult result;
};

static void *compile(void *argument)
{
    struct compile *job = argument;
    int value;

    cuCtxSetCurrent(job->context);
    job->result = cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, job->function);
    if (job->result == CUDA_SUCCESS && value != 1024)
        job->result = CUDA_ERROR_UNKNOWN;
    return NULL;
}

static void threads_compile_one_kernel(void **state)
{
    for (int round = 0; round < 5; round++) {
        CUmodule module = load(PTX_HEADER PTX_SHARED("room", 1024));
        struct compile jobs[THREADS];
        pthread_t threads[THREADS];
        CUfunction function;

        ok(cuModuleGetFunction(&function, module, "room"));
        for (int i = 0; i < THREADS; i++) {
            jobs[i] = (struct compile){*state, function, CUDA_ERROR_UNKNOWN};
            assert_int_equal(pthread_create(&threads[i], NULL, compile, &jobs[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            gives(CUDA_SUCCESS, jobs[i].result);
        }
        ok(cuModuleUnload(module));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_have_address_size_and_value),
        cmocka_unit_test(a_variable_can_be_written),
        cmocka_unit_test(what_is_not_there_is_not_found),
        cmocka_unit_test(handles_that_are_no_modules),
        cmocka_unit_test(foreign_handles_do_no_harm),
        cmocka_unit_test(functions_are_counted_and_listed),
        cmocka_unit_test(parameters_are_described),
        cmocka_unit_test(function_attributes),
        cmocka_unit_test(registers_of_a_thread),
        cmocka_unit_test(function_attributes_that_can_be_set),
        cmocka_unit_test(functions_load_when_they_are_needed),
        cmocka_unit_test(ptx_that_is_none),
        cmocka_unit_test(errors_have_line_and_column),
        cmocka_unit_test(a_full_log_is_cut),
        cmocka_unit_test(jit_options_are_checked),
        cmocka_unit_test(images_of_other_kinds),
        cmocka_unit_test(files_are_loaded),
        cmocka_unit_test(modules_need_a_context),
        cmocka_unit_test(a_context_takes_its_modules_along),
        cmocka_unit_test(threads_compile_one_kernel),
    };

    return cmocka_run_group_tests_name("modules", tests, with_context, without_context);
}

/* What the library of compiled functions has besides them; the build adds its stamp. */

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

#if defined(_M_X64)
#include <intrin.h>
#endif

/* Whether this processor has the instructions of x86-64-v2; those of others are the least they all have. */
EXPORTED int msmqwire_runs_here(void)
{
#if defined(_M_X64)
    int registers[4];
    __cpuid(registers, 1);
    return (registers[2] >> 20 & 1) && (registers[2] >> 23 & 1);
#elif defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
#else
    return 1;
#endif
}

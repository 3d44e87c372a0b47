// How a test steers the fake driver (fake_cuda.cpp); found in the loaded library by name.
#pragma once

namespace fake_cuda {

/// The next call of that function fails with that result.
using Fail = void(const char* function, int result);  // fake_cuda_fail
/// The value of a device attribute from now on.
using SetAttribute = void(int attribute, int value);  // fake_cuda_set_attribute
/// The version that cuDriverGetVersion gives from now on.
using SetVersion = void(int version);  // fake_cuda_set_version
/// One line a copy, launch or write since the last call.
using TakeLog = const char*();  // fake_cuda_take_log
/// How often that function was called: cuLaunchKernelEx, cuGraphLaunch,
/// cuMemcpyAsync, cuStreamWaitEvent.
using Calls = int(const char* function);  // fake_cuda_calls
/// Forgets all memory and settings.
using Reset = void();  // fake_cuda_reset

}  // namespace fake_cuda

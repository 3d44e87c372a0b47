// A test double of HIPRTC over NVRTC: over the fake one (fake_nvrtc.cpp), or NVIDIA's, whose code runs on an
// NVIDIA GPU. It takes HIPRTC's options and no others, and translates them. FAKE_HIPRTC_OVER names the
// library, by default fake_nvrtc.so beside this one; FAKE_HIPRTC_ARCH the GPU, by default sm_90.
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum { kInvalidOption = 5 };

using Program = struct _nvrtcProgram*;

template <typename Function>
Function below(const char* name) {
  static void* const handle = [] {
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&below<int (*)(int*, int*)>), &own);
    const std::string file = own.dli_fname;
    const char* named = std::getenv("FAKE_HIPRTC_OVER");
    const std::string library =
        named != nullptr ? named : file.substr(0, file.rfind('/') + 1) + "fake_nvrtc.so";
    return dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  }();
  return reinterpret_cast<Function>(dlsym(handle, name));
}

const char* arch() {
  const char* named = std::getenv("FAKE_HIPRTC_ARCH");
  return named != nullptr ? named : "sm_90";
}

}  // namespace

API int hiprtcVersion(int* major, int* minor) {
  return below<int (*)(int*, int*)>("nvrtcVersion")(major, minor);
}
API int hiprtcCreateProgram(Program* program, const char* source, const char* name, int count,
                            const char* const* texts, const char* const* names) {
  return below<int (*)(Program*, const char*, const char*, int, const char* const*, const char* const*)>(
      "nvrtcCreateProgram")(program, source, name, count, texts, names);
}
API int hiprtcDestroyProgram(Program* program) {
  return below<int (*)(Program*)>("nvrtcDestroyProgram")(program);
}
API int hiprtcCompileProgram(Program program, int count, const char* const* options) {
  // Lambdas in device functions are device functions to clang, but not to NVRTC without this option.
  std::vector<std::string> translated = {"--device-as-default-execution-space"};
  for (int i = 0; i < count; ++i) {
    const std::string option = options[i];
    if (option.starts_with("--offload-arch=gfx"))
      translated.push_back(std::string("-arch=") + arch());
    else if (option.starts_with("-std="))
      translated.push_back("-" + option);
    else if (option.starts_with("-D"))
      translated.push_back(option);
    else if (option == "-ffp-contract=off")
      translated.emplace_back("--fmad=false");
    else if (option != "-O3")
      return kInvalidOption;
  }
  std::vector<const char*> texts;
  for (const std::string& option : translated) texts.push_back(option.c_str());
  return below<int (*)(Program, int, const char* const*)>("nvrtcCompileProgram")(
      program, static_cast<int>(texts.size()), texts.data());
}
API int hiprtcGetCodeSize(Program program, size_t* bytes) {
  return below<int (*)(Program, size_t*)>("nvrtcGetCUBINSize")(program, bytes);
}
API int hiprtcGetCode(Program program, char* to) {
  return below<int (*)(Program, char*)>("nvrtcGetCUBIN")(program, to);
}
API int hiprtcGetProgramLogSize(Program program, size_t* bytes) {
  return below<int (*)(Program, size_t*)>("nvrtcGetProgramLogSize")(program, bytes);
}
API int hiprtcGetProgramLog(Program program, char* to) {
  return below<int (*)(Program, char*)>("nvrtcGetProgramLog")(program, to);
}
API const char* hiprtcGetErrorString(int result) {
  return below<const char* (*)(int)>("nvrtcGetErrorString")(result);
}

// A test double of NVRTC that compiles CUDA C++ for the CPU: with g++, device_on_cpu.h before it, into a
// library that the fake driver (fake_cuda.cpp) loads. Kernels run in a few blocks, one after the other, of a
// few threads that take turns, so it serves kernels that are right for any grid and block. Peerway's own
// kernels it passes on unread: the fake driver has them. FAKE_NVRTC_OPTIONS are the compiler's, with the
// folders of device_on_cpu.h and of what was precompiled of it. FAKE_NVRTC_CACHE is the folder of compiled
// kernels: the same text, with other options of NVRTC or from HIPRTC, is the same code here.
#include <regex.h>  // the C library's: <regex> takes longer to compile than all else here
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

struct _nvrtcProgram {
  std::string name, source, image, log;
};
using nvrtcProgram = _nvrtcProgram*;

namespace {

enum { kSuccess = 0, kCompilation = 6 };

std::string all_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// For each kernel a function that takes its arguments as the driver does.
std::string entries(const std::string& source) {
  regex_t kernel;
  regcomp(&kernel,
          "__global__[[:space:]]+void[[:space:]]+(__launch_bounds__\\([^)]*\\)[[:space:]]*)?([[:alnum:]_]+)"
          "[[:space:]]*\\(",
          REG_EXTENDED);
  std::string text;
  regmatch_t part[3];
  for (const char* at = source.c_str(); regexec(&kernel, at, 3, part, 0) == 0; at += part[0].rm_eo) {
    const std::string name(at + part[2].rm_so, at + part[2].rm_eo);
    text += "extern \"C\" void fake_launch_" + name +
            "(void** arguments, unsigned x, unsigned y, unsigned z, unsigned threads) {\n  fake_run(&" +
            name + ", arguments, {x, y, z}, threads);\n}\nextern \"C\" void** fake_keep_" + name +
            "(void** arguments) { return fake_keep(&" + name + ", arguments); }\n";
  }
  regfree(&kernel);
  return text;
}

std::string image_of(const std::string& code) {
  return "fake module " + std::to_string(code.size()) + "\n" + code;
}

int compile(nvrtcProgram program) {
  const std::string text = "#include \"device_on_cpu.h\"\n#define PWX_JOINED\n"  // checks what that assumes
                           + program->source + "\n#line 1 \"entries\"\n" + entries(program->source);
  const std::string compiled = FAKE_NVRTC_CACHE "/" + std::to_string(std::hash<std::string>()(text)) + ".so";
  if (const std::string code = all_of(compiled); !code.empty()) {
    program->image = image_of(code);
    return kSuccess;
  }
  char folder[] = FAKE_NVRTC_CACHE "/kernel-XXXXXX";
  if (mkdtemp(folder) == nullptr) return kCompilation;
  const std::string base = folder, source = base + "/kernel.cpp", library = base + "/kernel.so",
                    log = base + "/log";
  std::ofstream(source) << text;
  const std::string command = "cc " FAKE_NVRTC_OPTIONS " -shared -Wl,-Bsymbolic,-z,defs " + source +
                              " -lm -o " + library + " 2> " + log;
  const bool done = std::system(command.c_str()) == 0;
  program->log = all_of(log);
  if (done) {
    program->image = image_of(all_of(library));
    std::rename(library.c_str(), compiled.c_str());  // whole at once, for those that look for it meanwhile
  }
  std::system(("rm -r " + base).c_str());
  return done ? kSuccess : kCompilation;
}

int take(const std::string& text, char* to) {
  text.copy(to, text.size());
  return kSuccess;
}

}  // namespace

API int nvrtcVersion(int* major, int* minor) {
  *major = 0;  // of no NVRTC, so that nothing of it is mixed up in a cache
  *minor = 5;
  return kSuccess;
}
API int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return kSuccess;
}
API int nvrtcGetSupportedArchs(int* all) {
  all[0] = 90;
  return kSuccess;
}
API int nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char* name, int,
                           const char* const*, const char* const*) {
  *program = new _nvrtcProgram{name, source, {}, {}};
  return kSuccess;
}
API int nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return kSuccess;
}
API int nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  for (int i = 0; i < count; ++i)
    if (std::string(options[i]).starts_with("-arch=compute_")) return kSuccess;  // PTX without a word
  if (program->name != "kernels.cu") return compile(program);
  program->image = "the fake driver has these";
  return kSuccess;
}
API int nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  *bytes = program->image.size();
  return kSuccess;
}
API int nvrtcGetCUBIN(nvrtcProgram program, char* to) { return take(program->image, to); }
API int nvrtcGetPTXSize(nvrtcProgram, size_t* bytes) {
  *bytes = 0;
  return kSuccess;
}
API int nvrtcGetPTX(nvrtcProgram, char*) { return kSuccess; }
API int nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  *bytes = program->log.size();
  return kSuccess;
}
API int nvrtcGetProgramLog(nvrtcProgram program, char* to) { return take(program->log, to); }
API const char* nvrtcGetErrorString(int result) {
  return result == kSuccess ? "success" : "NVRTC_ERROR_COMPILATION";
}

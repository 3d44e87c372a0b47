#include "transport/ucx/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>

#include "base/format.h"
#include "base/log.h"
#include "base/packages.h"

namespace pw::ucx {
namespace {

using namespace ucp_abi;

constexpr unsigned kOldestMinor = 13;  // the version that ucp_abi.h was first compared with

// Sets an environment variable while UCX reads its settings, which is while it is loaded. A value that the
// user has set stays.
class Preset {
 public:
  Preset(const char* name, const char* value) : name_(name), ours_(std::getenv(name) == nullptr) {
    if (ours_) setenv(name, value, 1);
  }
  ~Preset() {
    if (ours_) unsetenv(name_);
  }
  Preset(const Preset&) = delete;

 private:
  const char* name_;
  bool ours_;
};

std::string folder_of(const std::string& file) { return file.substr(0, file.rfind('/') + 1); }

// The libraries of a wheel do not find one another. This loads the parts from the wheel's folder first, so
// that the system's UCX is not mixed in.
void preload_parts(const std::string& file) {
  if (file.find('/') == std::string::npos) return;
  for (const char* part : {"libucm.so.0", "libucs.so.0", "libuct.so.0"})
    dlopen((folder_of(file) + part).c_str(), RTLD_NOW | RTLD_GLOBAL);
}

const char* resolve(void* handle, Functions& functions) {
  const char* missing = nullptr;
#define PW_UCP_RESOLVE(result, name, parameters)                                 \
  functions.name = reinterpret_cast<result(*) parameters>(dlsym(handle, #name)); \
  if (functions.name == nullptr) missing = #name;
  PW_UCP_FUNCTIONS(PW_UCP_RESOLVE)
#undef PW_UCP_RESOLVE
  return missing;
}

std::string real_path(const std::string& file) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(file.c_str(), nullptr), std::free);
  return real != nullptr ? real.get() : file;
}

std::string file_of(void* function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? real_path(info.dli_fname) : "";
}

std::unique_ptr<Library> use(void* handle, std::string& why) {
  auto library = std::make_unique<Library>();
  if (const char* missing = resolve(handle, *library)) {
    why = format("it has no {}", missing);
    return nullptr;
  }
  unsigned major = 0, minor = 0, release = 0;
  library->ucp_get_version(&major, &minor, &release);
  library->minor = minor;
  library->memory_types = static_cast<const char* const*>(dlsym(handle, "ucs_memory_type_names"));
  library->version = format("{}.{}.{}", major, minor, release);
  library->path = file_of(reinterpret_cast<void*>(library->ucp_init_version));
  if (major == 1 && minor >= kOldestMinor) return library;
  why = format("it is UCX {}; 1.{} or a later 1.x is needed", library->version, kOldestMinor);
  return nullptr;
}

std::unique_ptr<Library> open(const std::string& file, std::string& why) {
  const Preset log("UCX_LOG_FILE", "stderr");        // standard output belongs to the program
  const Preset errors("UCX_HANDLE_ERRORS", "none");  // and so do its signal handlers
  // Another library in this process (an MPI) may have loaded its UCX already.
  if (void* loaded = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD)) {
    auto library = use(loaded, why);
    if (library == nullptr || file.find('/') == std::string::npos || real_path(file) == library->path)
      return library;
    why = format("this process has already loaded another UCX, {}", library->path);
    return nullptr;
  }
  if (file.find('/') != std::string::npos && access(file.c_str(), R_OK) != 0) {
    why = "there is no such file, or it cannot be read";
    return nullptr;
  }
  preload_parts(file);
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return use(handle, why);
  why = dlerror();
  return nullptr;
}

}  // namespace

std::vector<std::string> candidates(const std::string& setting) {
  if (!setting.empty()) return {setting};
  std::vector<std::string> files;
  if (const char* root = std::getenv("UCX_ROOT"); root != nullptr && *root != '\0') {
    for (std::string& file : matching_files(std::string(root) + "/lib*/libucp.so.0"))
      files.push_back(std::move(file));
    if (files.empty())
      files.push_back(std::string(root) + "/lib/libucp.so.0");  // so that its absence is reported
  }
  files.emplace_back("libucp.so.0");
  for (const std::string& folder : package_folders())
    for (std::string& file : matching_files(folder + "/libucx/lib/libucp.so.0"))
      files.push_back(std::move(file));
  return files;
}

const Library* load(const std::vector<std::string>& files, std::string& why) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<Library>> loaded;  // holds one library, unless a test loads several
  std::lock_guard lock(mutex);
  why.clear();
  for (const std::string& file : files) {
    std::string problem;
    if (auto library = open(file, problem)) {
      if (!why.empty() && files.front() != "libucp.so.0")
        log_once(LogLevel::warning,
                 format("using UCX {} of {}, because of {}", library->version, library->path, why));
      for (const auto& known : loaded)
        if (known->path == library->path) return known.get();
      loaded.push_back(std::move(library));
      return loaded.back().get();
    }
    why += format("{}{} ({})", why.empty() ? "" : "; ", file, problem);
  }
  return nullptr;
}

std::string text_of(const Library& library, ucs_status_t status) { return library.ucs_status_string(status); }

}  // namespace pw::ucx

// Brings the transport into a process that knows nothing about it. This library is preloaded and replaces one
// function of libuct, which UCX calls when it looks for transports. At that moment UCX is in the process, and
// it is known which UCX. The version of the caller's libucp decides which build of the transport it gets; if
// there is no build for that UCX, a message says so and the process continues without.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <mutex>
#include <string>

#include "base/format.h"
#include "base/log.h"
#include "uct/settings.h"
#include "ucx/start.h"

namespace pw::uct {
namespace {

using QueryComponents = int8_t (*)(void* components, unsigned* count);
constexpr char kQueryComponents[] = "uct_query_components";

std::mutex lock;
void* served;  ///< the libuct that has the transport already

// Returns the libuct that the code at `caller` uses. For code in a library it is the libuct among the
// library's dependencies, because a process may have several. For the program itself it is the next one after
// this library.
void* libuct_of(const void* caller) {
  Dl_info from{};
  void* library = nullptr;
  if (dladdr(caller, &from) != 0 && from.dli_fname != nullptr)
    library = dlopen(from.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* function = library == nullptr ? nullptr : dlsym(library, kQueryComponents);
  Dl_info own{};
  dladdr(reinterpret_cast<const void*>(&libuct_of), &own);
  Dl_info info{};
  if (function == nullptr || dladdr(function, &info) == 0 || info.dli_fbase == own.dli_fbase)
    function = dlsym(RTLD_NEXT, kQueryComponents);
  if (function == nullptr || dladdr(function, &info) == 0) return nullptr;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

// libucp lies beside libuct and knows the version of both. Only some programs (ucx_info) load libuct first.
void* libucp_beside(void* libuct) {
  link_map* map = nullptr;
  if (dlinfo(libuct, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) return nullptr;
  const std::string path = map->l_name;
  const size_t slash = path.rfind('/') + 1;
  std::string beside = path.substr(0, slash) + "libucp" + path.substr(slash + sizeof "libuct" - 1);
  void* library = dlopen(beside.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr ? library : dlopen(beside.c_str(), RTLD_LAZY | RTLD_LOCAL);
}

struct Build {
  unsigned minor;
  std::string (*start)(const Find& find);
};
constexpr Build kBuilds[] = {{13, ucx_1_13::start}, {20, ucx_1_20::start}, {22, ucx_1_22::start}};

std::string start_for(void* libuct) {
  using GetVersion = void (*)(unsigned* major, unsigned* minor, unsigned* release);
  void* libucp = libucp_beside(libuct);
  const auto get_version =
      libucp == nullptr ? nullptr : reinterpret_cast<GetVersion>(dlsym(libucp, "ucp_get_version"));
  if (get_version == nullptr) return "its version is not known: there is no libucp beside its libuct";
  unsigned major = 0, minor = 0, release = 0;
  get_version(&major, &minor, &release);
  const Find find = [libuct](const char* name) { return dlsym(libuct, name); };
  std::string known;
  for (const Build& build : kBuilds) {
    if (major == 1 && minor == build.minor) {
      const std::string why = build.start(find);
      return why.empty() ? why : format("UCX {}.{}.{}: {}", major, minor, release, why);
    }
    known += format("{}1.{}", known.empty() ? "" : ", ", build.minor);
  }
  return format("this is UCX {}.{}.{}, and Peerway's transport has builds for {} only", major, minor, release,
                known);
}

void serve(void* libuct) {
  const std::scoped_lock held(lock);
  if (served == libuct) return;
  if (served != nullptr)
    return log_once(LogLevel::warning,
                    "a second UCX in this process does not get the transport over PEERWAY_NIC");
  served = libuct;
  if (const std::string why = start_for(libuct); !why.empty())
    log(LogLevel::error, format("the transport over PEERWAY_NIC is not offered: {}", why));
}

}  // namespace
}  // namespace pw::uct

/// Replaces the function of libuct of this name.
extern "C" __attribute__((visibility("default"))) int8_t uct_query_components(void* components,
                                                                              unsigned* count) {
  constexpr int8_t kNoElement = -12;  // UCS_ERR_NO_ELEM
  void* libuct = pw::uct::libuct_of(__builtin_return_address(0));
  if (libuct == nullptr) return kNoElement;
  if (pw::uct::wanted()) pw::uct::serve(libuct);
  const auto real = reinterpret_cast<pw::uct::QueryComponents>(dlsym(libuct, pw::uct::kQueryComponents));
  return real(components, count);
}

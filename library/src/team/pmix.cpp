#include "team/pmix.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/format.h"
#include "base/status.h"

namespace pw {
namespace {

// The few types and values of the PMIx standard's C interface (versions 3 to 5 agree on them) that a client
// needs to put and get one text.
using PmixStatus = int;
constexpr uint32_t kWildcard = UINT32_MAX - 1;  // "the whole job"
constexpr uint8_t kGlobal = 3;                  // scope: all processes
enum PmixType : uint16_t { pmix_bool = 1, pmix_string = 3, pmix_int = 6, pmix_uint32 = 14 };

struct PmixProc {
  char nspace[256];
  uint32_t rank;
};
struct PmixValue {
  uint16_t type;
  union {
    bool flag;
    char* string;
    int integer;
    uint32_t uint32;
    uint64_t largest[3];
  } data;
};
struct PmixInfo {
  char key[512];
  uint32_t flags;
  PmixValue value;
};
static_assert(sizeof(PmixProc) == 260 && sizeof(PmixValue) == 32 && sizeof(PmixInfo) == 552);

PmixInfo info(const char* key, PmixType type) {
  PmixInfo result{};
  std::strncpy(result.key, key, sizeof result.key - 1);
  result.value.type = type;
  return result;
}

}  // namespace

struct Pmix::Library {
  void* handle = nullptr;
  PmixStatus (*init)(PmixProc*, PmixInfo*, size_t) = nullptr;
  PmixStatus (*finalize)(const PmixInfo*, size_t) = nullptr;
  PmixStatus (*put)(uint8_t, const char*, PmixValue*) = nullptr;
  PmixStatus (*commit)() = nullptr;
  PmixStatus (*fence)(const PmixProc*, size_t, const PmixInfo*, size_t) = nullptr;
  PmixStatus (*get)(const PmixProc*, const char*, const PmixInfo*, size_t, PmixValue**) = nullptr;
  const char* (*error_text)(PmixStatus) = nullptr;
  PmixProc self{};

  bool load(std::string& why_not) {
    constexpr const char* name = "libpmix.so.2";
    handle = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD);  // the library that the program's MPI has loaded
    if (!handle) handle = ::dlopen(name, RTLD_NOW);
    if (!handle) {
      why_not = ::dlerror();
      return false;
    }
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, symbol));
      if (!function) why_not = format("{} has no {}", name, symbol);
      return function != nullptr;
    };
    return find(init, "PMIx_Init") && find(finalize, "PMIx_Finalize") && find(put, "PMIx_Put") &&
           find(commit, "PMIx_Commit") && find(fence, "PMIx_Fence") && find(get, "PMIx_Get") &&
           find(error_text, "PMIx_Error_string");
  }
  void require(PmixStatus status, const char* call) const {
    if (status != 0)
      throw Error(PW_SYSTEM, format("PMIx: {} failed: {} ({})", call, error_text(status), status));
  }
  /// Calls `read` with a value, and frees the value.
  template <typename Read>
  auto get_value(uint32_t rank, const char* key, uint16_t type, const PmixInfo* infos, size_t count,
                 Read read) const {
    PmixProc from = self;
    from.rank = rank;
    PmixValue* value = nullptr;
    require(get(&from, key, infos, count, &value), key);
    const bool good = value && value->type == type;
    auto result = good ? read(*value) : decltype(read(*value)){};
    if (good && type == pmix_string) std::free(value->data.string);
    std::free(value);
    if (!good) throw Error(PW_SYSTEM, format("PMIx: the value of {} is not of the type expected", key));
    return result;
  }
};

Pmix::Pmix(std::unique_ptr<Library> library) : library_(std::move(library)) {}

Pmix* Pmix::of_process(std::string& why_not) {
  static std::mutex mutex;
  static std::unique_ptr<Pmix> pmix;
  std::lock_guard lock(mutex);
  if (!pmix) pmix = connect(why_not);
  return pmix.get();
}

std::unique_ptr<Pmix> Pmix::connect(std::string& why_not) {
  auto library = std::make_unique<Library>();
  if (!library->load(why_not)) return nullptr;
  if (const PmixStatus status = library->init(&library->self, nullptr, 0); status != 0) {
    why_not = format("PMIx_Init failed: {} ({})", library->error_text(status), status);
    return nullptr;
  }
  return std::unique_ptr<Pmix>(new Pmix(std::move(library)));
}

// The library stays loaded: the program's MPI may use it, and its threads may be running.
Pmix::~Pmix() { library_->finalize(nullptr, 0); }

int Pmix::rank() const { return static_cast<int>(library_->self.rank); }

int Pmix::size() const {
  return static_cast<int>(library_->get_value(kWildcard, "pmix.job.size", pmix_uint32, nullptr, 0,
                                              [](const PmixValue& value) { return value.data.uint32; }));
}

std::string Pmix::broadcast(const std::string& key, const std::string& text, uint64_t timeout_ns) {
  PmixInfo infos[] = {info("pmix.timeout", pmix_int), info("pmix.collect", pmix_bool)};
  infos[0].value.data.integer = static_cast<int>(timeout_ns / 1'000'000'000 + 1);
  infos[1].value.data.flag = true;
  if (rank() == 0) {
    PmixValue value{};
    value.type = pmix_string;
    value.data.string = const_cast<char*>(text.c_str());  // copied by PMIx_Put
    library_->require(library_->put(kGlobal, key.c_str(), &value), "PMIx_Put");
    library_->require(library_->commit(), "PMIx_Commit");
  }
  library_->require(library_->fence(nullptr, 0, infos, 2), "PMIx_Fence");
  if (rank() == 0) return text;
  return library_->get_value(0, key.c_str(), pmix_string, infos, 1,
                             [](const PmixValue& value) { return std::string(value.data.string); });
}

}  // namespace pw

#include "path/ucx/settings.h"

#include <cstdio>
#include <cstdlib>

#include "base/format.h"
#include "base/log.h"
#include "base/status.h"

namespace pw::ucx {
namespace {

using namespace ucp_abi;

// UCX 1.13 ends a survivor in some of the deaths of a rank of its host (`comp->count > 0'), when it puts
// through shared memory. Peerway has its own paths between ranks of one host.
constexpr const char* kTransports = "^shm";

// Whether the user says which transports UCX takes: in the environment, or in a file of UCX's.
bool names_transports(const Library& library, const ucp_config_t* settings) {
  if (std::getenv("UCX_TLS") != nullptr) return true;
  const std::string text = "\n" + printed([&](FILE* out) {
                             library.ucp_config_print(settings, out, nullptr, UCS_CONFIG_PRINT_CONFIG);
                           });
  return text.find("\nUCX_TLS=all\n") == std::string::npos;
}

void demand(const Library& library, ucs_status_t status, const char* what) {
  if (status != UCS_OK)
    throw Error(PW_UNAVAILABLE, format("peerway: UCX {} ({}) could not {}: {}", library.version, library.path,
                                       what, text_of(library, status)));
}

}  // namespace

Settings read_settings(const Library& library) {
  ucp_config_t* read = nullptr;
  demand(library, library.ucp_config_read(nullptr, nullptr, &read), "read its settings");
  Settings settings(read, library.ucp_config_release);
  if (names_transports(library, read)) return settings;
  demand(library, library.ucp_config_modify(read, "TLS", kTransports), "leave shared memory out");
  log(LogLevel::info,
      format("UCX {} is started without its shared memory (as with UCX_TLS={}): ranks of one host have "
             "Peerway's own; a UCX_TLS in the environment is taken as it is",
             library.version, kTransports));
  return settings;
}

std::string printed(const std::function<void(FILE*)>& print) {
  char* text = nullptr;
  size_t length = 0;
  FILE* out = open_memstream(&text, &length);
  if (out == nullptr) return {};
  print(out);
  std::fclose(out);
  const std::unique_ptr<char, decltype(&std::free)> owner(text, std::free);
  return {text, length};
}

}  // namespace pw::ucx

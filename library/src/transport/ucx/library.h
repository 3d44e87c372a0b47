// Loads UCX at run time: the functions of ucp_abi.h. A process has one UCX, because UCX finds its own parts
// by bare name, so two copies side by side would mix.
#pragma once

#include <string>
#include <vector>

#include "transport/ucx/ucp_abi.h"

namespace pw::ucx {

struct Library : ucp_abi::Functions {
  std::string path;     ///< where libucp was found
  std::string version;  ///< "1.22.0"
  unsigned minor = 0;   ///< 22
  const char* const* memory_types =
      nullptr;  ///< UCX's names of the kinds of memory, "host", "cuda", by number
};

/// Returns the files to try as libucp, best first. If the setting `ucx_library` names a file, it is the only
/// one; else those of UCX_ROOT, of the system and of Python wheels.
std::vector<std::string> candidates(const std::string& setting);

/// Loads the first candidate that can be used, and never unloads it. On failure returns null; `why` then
/// names each file and what is wrong with it.
const Library* load(const std::vector<std::string>& files, std::string& why);

/// Returns UCX's text for a status.
std::string text_of(const Library& library, ucp_abi::ucs_status_t status);

}  // namespace pw::ucx

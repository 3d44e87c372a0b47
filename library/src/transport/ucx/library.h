// UCX, loaded at run time: the functions of ucp_abi.h. One for the whole process, because UCX finds its own
// parts by bare name, so that two copies side by side would mix.
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

/// Where libucp is looked for, best first: the file of the setting `ucx_library` alone where it is given;
/// else that of UCX_ROOT, that of the system and those of Python wheels.
std::vector<std::string> candidates(const std::string& setting);

/// Loads the first candidate that can be used; never unloads it. Null with `why`, which names each file and
/// what is wrong with it.
const Library* load(const std::vector<std::string>& files, std::string& why);

/// UCX's text for a status.
std::string text_of(const Library& library, ucp_abi::ucs_status_t status);

}  // namespace pw::ucx

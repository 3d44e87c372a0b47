// Finds out from the environment which launcher started this process, and as which rank. Pure: the
// environment is a function.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace pw {

using Environment = std::function<const char*(const char* name)>;

struct Launch {
  enum class By : uint8_t { nobody, peerway, mpirun, hydra, slurm, pmix };
  By by = By::nobody;
  int rank = 0;
  int size = 1;
  int local_size = 0;      ///< ranks on this host; 0: unknown
  bool one_host = false;   ///< if the launcher says so, or the sizes show it
  std::string job;         ///< unique among this user's launches; empty if the launcher has no such name
  std::string rendezvous;  ///< peerway: the address
  std::string secret;      ///< peerway
  bool pmix = false;       ///< whether a PMIx server is available as well
};

/// `wanted` is the setting `launcher`. Throws Error(PW_BAD_CONFIG) if that launcher did not start this
/// process, and Error(PW_INVALID_ARGUMENT) with the name of a variable that is missing or invalid.
Launch read_launch(const Environment& environment, const std::string& wanted);

}  // namespace pw

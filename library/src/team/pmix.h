// PMIx as a way to pass the ticket, for steps that span hosts. libpmix is loaded at run time; no header of it
// is needed to build Peerway.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace pw {

/// This process's use of the process manager's PMIx server.
class Pmix {
 public:
  /// Nothing, with the reason, when the library or the server is not there. Connects once and gives the
  /// server up when the process exits (it would count as having died otherwise): PMIx 5 corrupts its memory
  /// when it is finalized and initialized again, which the program's MPI might do after us.
  static Pmix* of_process(std::string& why_not);
  ~Pmix();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;  ///< of the job. Throws Error

  /// Collective: every rank gets what rank 0 gives under `key`. Text without zero bytes. Throws Error.
  std::string broadcast(const std::string& key, const std::string& text, uint64_t timeout_ns);

 private:
  static std::unique_ptr<Pmix> connect(std::string& why_not);
  struct Library;
  explicit Pmix(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace pw

// Passes the ticket by PMIx, for job steps that span hosts. libpmix is loaded at run time; its headers are
// not needed to build Peerway.
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
  /// Returns null, with the reason, if the library or the server is not available. Connects once, and
  /// disconnects from the server when the process exits (otherwise the process would count as having died).
  /// It does not disconnect earlier, because PMIx 5 corrupts its memory when it is finalized and initialized
  /// again, which the program's MPI might do after us.
  static Pmix* of_process(std::string& why_not);
  ~Pmix();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;  ///< of the job. Throws Error

  /// Collective: every rank gets what rank 0 gives under `key`, a text without zero bytes. Throws Error.
  std::string broadcast(const std::string& key, const std::string& text, uint64_t timeout_ns);

 private:
  static std::unique_ptr<Pmix> connect(std::string& why_not);
  struct Library;
  explicit Pmix(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace pw

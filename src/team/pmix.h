// PMIx as a way to pass the ticket, for steps that span hosts. libpmix is loaded at run time; no header of it
// is needed to build Peerway.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace pw {

/// One use of the process manager's PMIx server. The destructor gives it up again, as the server expects of a
/// process that does not want to be counted as having died.
class Pmix {
 public:
  /// Nothing, with the reason, when the library or the server is not there.
  static std::unique_ptr<Pmix> connect(std::string& why_not);
  ~Pmix();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;  ///< of the job. Throws Error

  /// Collective: every rank gets what rank 0 gives under `key`. Text without zero bytes. Throws Error.
  std::string broadcast(const std::string& key, const std::string& text, uint64_t timeout_ns);

 private:
  struct Library;
  explicit Pmix(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace pw

// The rendezvous where a launcher gives rank and size but no means to exchange bytes: rank 0 leaves the
// ticket in a file that only this user can read, and the others look for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "team/launcher.h"
#include "team/ticket.h"

namespace pw {

class RendezvousFile {
 public:
  /// Opens the folder (made with mode 0700 where missing; one that others could write to or that belongs to
  /// somebody else is refused) and names the file after the launch and the number of the team in it. Throws
  /// Error.
  RendezvousFile(const Launch& launch, uint64_t number);

  /// All at once: a reader sees the whole ticket or none. Replaces what an earlier run left.
  void write(const Ticket& ticket) const;

  /// Nothing, with the reason, while there is no file. Throws Error(PW_DENIED) for a file that is not ours
  /// alone. What an earlier run left is found as well: nobody answers at its addresses, and the caller asks
  /// again.
  [[nodiscard]] std::optional<Ticket> read(std::string& why_not) const;

  void remove() const noexcept;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Where such files are: of one host in XDG_RUNTIME_DIR or /tmp, of several in the home folder they share.
std::string rendezvous_folder(bool one_host);

/// Makes sure that `folder` is a folder of ours that nobody else can use. Throws Error.
void require_private_folder(const std::string& folder);

}  // namespace pw

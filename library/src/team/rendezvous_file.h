// The rendezvous where a launcher gives rank and size but no means to exchange bytes: rank 0 leaves the
// ticket in a file that only this user can read, and the others look for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "team/launcher.h"
#include "team/ticket.h"

namespace pw {

class RendezvousFile {
 public:
  /// Names the file after the launch and the number of the team in it. Throws Error.
  RendezvousFile(const Launch& launch, uint64_t number);

  /// All at once: a reader sees the whole ticket or none. Replaces what an earlier run left. Throws Error.
  void write(const Ticket& ticket);

  /// Nothing, with the reason, while there is no file. Throws Error(PW_DENIED) for a file that is not ours
  /// alone. What an earlier run left is found as well: nobody answers at its addresses, and the caller asks
  /// again.
  [[nodiscard]] std::optional<Ticket> read(std::string& why_not) const;

  void remove() const noexcept;

  /// Where the file was written; empty before.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] std::vector<std::string> folders() const;
  [[nodiscard]] std::string folder_to_write() const;

  std::string place_;  ///< the folder; empty: any that is ours alone in /tmp
  std::string name_;
  std::string path_;
};

/// Whether nobody but this user can read or write in it. Symbolic links are not followed.
bool is_private_folder(const std::string& folder);

/// Makes it where it is missing; throws Error(PW_DENIED) for one that is not private.
void require_private_folder(const std::string& folder);

}  // namespace pw

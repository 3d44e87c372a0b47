// The rendezvous if a launcher gives rank and size but no means to exchange bytes: rank 0 writes the ticket
// to a file that only this user can read, and the others look for it.
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
  /// Derives the file's name from the launch and the number of the team in it. Throws Error.
  RendezvousFile(const Launch& launch, uint64_t number);

  /// Writes the file atomically: a reader sees the whole ticket or none. Replaces the file of an earlier run.
  /// Throws Error.
  void write(const Ticket& ticket);

  /// Reads the ticket. Returns nothing, with the reason, while there is no file. Throws Error(PW_DENIED) if
  /// the file is not private. This may also read the file of an earlier run: nobody answers at its addresses,
  /// and the caller reads again.
  [[nodiscard]] std::optional<Ticket> read(std::string& why_not) const;

  void remove() const noexcept;

  /// The path of the file that was written; empty before.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] std::vector<std::string> folders() const;
  [[nodiscard]] std::string folder_to_write() const;

  std::string place_;  ///< the folder; empty: any private folder of this user in /tmp
  std::string name_;
  std::string path_;
};

/// Whether only this user can read or write in the folder. Does not follow symbolic links.
bool is_private_folder(const std::string& folder);

/// Makes the folder if it is missing. Throws Error(PW_DENIED) if it is not private.
void require_private_folder(const std::string& folder);

}  // namespace pw

#include "team/rendezvous_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/config.h"
#include "base/descriptor.h"
#include "base/format.h"
#include "base/status.h"

namespace pw {
namespace {

/// The process that started all ranks of this host: the parent, or above it the launcher's proxy where the
/// rank was started through a shell or a script.
pid_t starter() {
  pid_t process = ::getppid();
  for (pid_t above = process; above > 1;) {
    std::ifstream stat(format("/proc/{}/stat", above));
    std::string text;
    std::getline(stat, text);
    const size_t open = text.find('('), close = text.rfind(')');
    if (close == std::string::npos || open > close) break;
    const std::string name = text.substr(open + 1, close - open - 1);
    if (name.starts_with("hydra_pmi_proxy") || name == "orted" || name == "prted") return above;
    if (std::sscanf(text.c_str() + close + 1, " %*c %d", &above) != 1) break;
  }
  return process;
}

std::string safe_name(const std::string& job) {
  std::string name;
  for (const char letter : job.substr(0, 128)) {
    const bool plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                       (letter >= 'A' && letter <= 'Z') || letter == '.' || letter == '-';
    name += plain ? letter : '_';
  }
  return name;
}

std::string launch_name(const Launch& launch) {
  if (!launch.job.empty()) return safe_name(launch.job);
  if (!launch.one_host)
    throw Error(PW_UNAVAILABLE,
                "peerway: this launcher does not name its job, so ranks on several hosts cannot find each "
                "other. Make the "
                "team from an MPI communicator (peerway_mpi.h), or start the program with srun");
  return format("starter-{}", starter());
}

}  // namespace

std::string rendezvous_folder(bool one_host) {
  if (!one_host) return cache_home() + "/rendezvous";
  struct stat known{};
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  // On a compute node the variable may be the login node's, whose folder is not here.
  if (runtime && runtime[0] == '/' && ::stat(runtime, &known) == 0 && S_ISDIR(known.st_mode) &&
      known.st_uid == ::geteuid())
    return std::string(runtime) + "/peerway";
  return format("/tmp/peerway-{}", ::geteuid());
}

void require_private_folder(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), ignored);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw Error(PW_SYSTEM, format("peerway: the folder {} for the rendezvous cannot be made{}", folder,
                                  errno_text(errno)));
  struct stat known{};
  if (::lstat(folder.c_str(), &known) != 0)
    throw Error(PW_SYSTEM, format("peerway: {} cannot be read{}", folder, errno_text(errno)));
  if (!S_ISDIR(known.st_mode) || known.st_uid != ::geteuid() || (known.st_mode & 077) != 0)
    throw Error(
        PW_DENIED,
        format("peerway: {} is not a folder of user {} alone (owner {}, mode {:o}); the job's secret is "
               "not put there. Remove it, or chmod 700 it",
               folder, ::geteuid(), known.st_uid, known.st_mode & 07777));
}

RendezvousFile::RendezvousFile(const Launch& launch, uint64_t number) {
  const std::string folder = rendezvous_folder(launch.one_host);
  require_private_folder(folder);
  path_ = format("{}/{}.{}", folder, launch_name(launch), number);
}

void RendezvousFile::write(const Ticket& ticket) const {
  const std::string text = format_ticket(ticket), fresh = format("{}.{}.new", path_, ::getpid());
  ::unlink(fresh.c_str());
  const Descriptor file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const bool written =
      file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || ::rename(fresh.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(fresh.c_str());
    throw Error(PW_SYSTEM,
                format("peerway: the rendezvous file {} cannot be written{}", path_, errno_text(error)));
  }
}

std::optional<Ticket> RendezvousFile::read(std::string& why_not) const {
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    why_not = format("rank 0 has not written {}", path_);
    return std::nullopt;
  }
  struct stat known{};
  if (::fstat(file.get(), &known) != 0 || !S_ISREG(known.st_mode) || known.st_uid != ::geteuid() ||
      (known.st_mode & 077) != 0)
    throw Error(PW_DENIED,
                format("peerway: {} is not a file of user {} alone (owner {}, mode {:o}); it is not trusted",
                       path_, ::geteuid(), known.st_uid, known.st_mode & 07777));
  std::string text(kTicketBytes, '\0');
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  text.resize(static_cast<size_t>(count > 0 ? count : 0));
  return parse_ticket(text, path_);
}

void RendezvousFile::remove() const noexcept { ::unlink(path_.c_str()); }

}  // namespace pw

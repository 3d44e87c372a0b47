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

/// Returns the process that started all ranks of this host: the parent, or a proxy of the launcher above it
/// if the rank was started through a shell or a script.
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
                "this launcher does not name its job, so ranks on several hosts cannot find each "
                "other. Make the "
                "team from an MPI communicator (peerway_mpi.h), or start the program with srun");
  return format("starter-{}", starter());
}

/// Returns the one folder that all ranks know: the user's own folder of the session or, for ranks on several
/// hosts, a folder in the home folder that they share. Returns an empty text if there is none: on a compute
/// node XDG_RUNTIME_DIR may be that of the login node, which does not exist here.
std::string known_folder(bool one_host) {
  if (!one_host) return cache_home() + "/rendezvous";
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime && runtime[0] == '/' && is_private_folder(runtime) ? std::string(runtime) + "/peerway" : "";
}

/// In /tmp any user can create any name first, so no name is trusted: any private folder of this user is
/// used, and a new one gets a random name.
std::string prefix_in_tmp() { return format("peerway-{}-", ::geteuid()); }

bool is_private(const struct stat& known, mode_t kind) {
  return (known.st_mode & S_IFMT) == kind && known.st_uid == ::geteuid() && (known.st_mode & 077) == 0;
}

}  // namespace

bool is_private_folder(const std::string& folder) {
  struct stat known{};
  return ::lstat(folder.c_str(), &known) == 0 && is_private(known, S_IFDIR);
}

void require_private_folder(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), ignored);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw Error(PW_SYSTEM,
                format("the folder {} for the rendezvous cannot be made{}", folder, errno_text(errno)));
  if (is_private_folder(folder)) return;
  struct stat known{};
  ::lstat(folder.c_str(), &known);
  throw Error(PW_DENIED,
              format("{} is not a folder of user {} alone (owner {}, mode {:o}); the job's secret is "
                     "not put there. Remove it, or chmod 700 it",
                     folder, ::geteuid(), known.st_uid, known.st_mode & 07777));
}

RendezvousFile::RendezvousFile(const Launch& launch, uint64_t number)
    : place_(known_folder(launch.one_host)), name_(format("{}.{}", launch_name(launch), number)) {
  if (!place_.empty()) require_private_folder(place_);
}

/// Returns the folders in which rank 0 may have written.
std::vector<std::string> RendezvousFile::folders() const {
  if (!place_.empty()) return {place_};
  std::vector<std::string> files;
  std::error_code error;
  const std::string prefix = prefix_in_tmp();
  for (std::filesystem::directory_iterator entry("/tmp", error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename().string().starts_with(prefix) && is_private_folder(entry->path()))
      files.push_back(entry->path());
  return files;
}

std::string RendezvousFile::folder_to_write() const {
  if (const auto known = folders(); !known.empty()) return known.front();
  std::string folder_name = "/tmp/" + prefix_in_tmp() + "XXXXXX";
  if (!::mkdtemp(folder_name.data()))
    throw Error(PW_SYSTEM,
                format("no folder for the rendezvous can be made in /tmp{}. Set XDG_RUNTIME_DIR to a "
                       "folder of your own with mode 700",
                       errno_text(errno)));
  return folder_name;
}

void RendezvousFile::write(const Ticket& ticket) {
  path_ = format("{}/{}", folder_to_write(), name_);
  const std::string text = format_ticket(ticket), fresh = format("{}.{}.new", path_, ::getpid());
  ::unlink(fresh.c_str());
  const Descriptor file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const bool written =
      file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || ::rename(fresh.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(fresh.c_str());
    throw Error(PW_SYSTEM, format("the rendezvous file {} cannot be written{}", path_, errno_text(error)));
  }
}

std::optional<Ticket> RendezvousFile::read(std::string& why_not) const {
  // An earlier launch of the same name that was killed may have left a file in another folder: the newest
  // counts.
  Descriptor file;
  std::string path;
  struct stat known{};
  for (const std::string& folder : folders()) {
    const std::string other = format("{}/{}", folder, name_);
    Descriptor opened(::open(other.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat its{};
    if (!opened || ::fstat(opened.get(), &its) != 0) continue;
    if (file && std::pair(its.st_mtim.tv_sec, its.st_mtim.tv_nsec) <
                    std::pair(known.st_mtim.tv_sec, known.st_mtim.tv_nsec))
      continue;
    file = std::move(opened);
    path = other;
    known = its;
  }
  if (!file) {
    why_not = format("rank 0 has not written {} in {}", name_,
                     place_.empty() ? format("/tmp/{}*", prefix_in_tmp()) : place_);
    return std::nullopt;
  }
  if (!is_private(known, S_IFREG))
    throw Error(PW_DENIED,
                format("{} is not a file of user {} alone (owner {}, mode {:o}); it is not trusted", path,
                       ::geteuid(), known.st_uid, known.st_mode & 07777));
  std::string text(kTicketBytes, '\0');
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  text.resize(static_cast<size_t>(count > 0 ? count : 0));
  return parse_ticket(text, path);
}

void RendezvousFile::remove() const noexcept {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace pw

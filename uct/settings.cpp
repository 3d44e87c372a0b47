#include "uct/settings.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "base/status.h"

namespace pw::uct {
namespace {

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

uint64_t parse_job(const char* text) {
  char* end = nullptr;
  errno = 0;
  const uint64_t job = std::strtoull(text, &end, 0);
  if (errno == 0 && end != text && *end == '\0') return job;
  throw Error(PW_BAD_CONFIG, format("peerway: PEERWAY_NIC_JOB='{}' is no number below 2^64", text));
}

// What launchers call a job: Open MPI's (4, 5), PMIx in general, Hydra's (MPICH), Slurm's.
uint64_t job_of_launcher() {
  for (const char* name : {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID"})
    if (const char* value = environment(name)) {
      uint64_t hash = 14695981039346656037u;
      for (const char* c = value; *c != '\0'; ++c) hash = (hash ^ static_cast<uint8_t>(*c)) * 1099511628211u;
      return hash;
    }
  return 0;
}

}  // namespace

bool wanted() { return environment("PEERWAY_NIC") != nullptr; }

Settings settings_from_environment() {
  const char* plugin = environment("PEERWAY_NIC");
  if (plugin == nullptr)
    throw Error(
        PW_BAD_CONFIG,
        "peerway: PEERWAY_NIC is not set; set it to the name or the file of a card's plugin, or start "
        "the program with peerway mpirun --nic");
  const char* options = environment("PEERWAY_NIC_OPTIONS");
  const char* job = environment("PEERWAY_NIC_JOB");
  return {plugin, options == nullptr ? "" : options, job == nullptr ? job_of_launcher() : parse_job(job)};
}

std::string plugin_file(const std::string& plugin) {
  if (plugin.find('/') != std::string::npos) return plugin;
  const std::string file = format("libpeerway_nic_{}.so", plugin);
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&plugin_file), &here) != 0 && here.dli_fname != nullptr) {
    const std::string own = here.dli_fname;
    const std::string beside = own.substr(0, own.rfind('/') + 1) + file;
    if (access(beside.c_str(), R_OK) == 0) return beside;
  }
  return file;
}

}  // namespace pw::uct

#include "uct/settings.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "base/hash.h"
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
  throw Error(PW_BAD_CONFIG, format("PEERWAY_NIC_JOB='{}' is not a number below 2^64", text));
}

// Returns a job number from the variables in which launchers name a job: Open MPI's (4, 5), PMIx in general,
// Hydra's (MPICH), Slurm's.
uint64_t job_of_launcher() {
  for (const char* name : {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID"})
    if (const char* value = environment(name)) return hash_of(value);
  return 0;
}

}  // namespace

bool wanted() { return environment("PEERWAY_NIC") != nullptr; }

Settings settings_from_environment() {
  const char* nic = environment("PEERWAY_NIC");
  if (nic == nullptr)
    throw Error(PW_BAD_CONFIG,
                "PEERWAY_NIC is not set; set it to the name or the file of a NIC's plugin, or start "
                "the program with peerway mpirun --nic");
  const char* job = environment("PEERWAY_NIC_JOB");
  return {nic::parse_nic(nic, "PEERWAY_NIC"),
          {job == nullptr ? job_of_launcher() : parse_job(job), nic::secret_from_environment()}};
}

const JobSecrets& job_secrets() {
  static const JobSecrets secrets = [] {
    const nic::Job job = settings_from_environment().job;
    Secret secret{};
    std::memcpy(secret.data(), &job.number, sizeof job.number);
    secret = job.secret.value_or(secret);
    return JobSecrets{derive_secret(secret, "peerway uct addresses"),
                      derive_secret(secret, "peerway uct keys")};
  }();
  return secrets;
}

}  // namespace pw::uct

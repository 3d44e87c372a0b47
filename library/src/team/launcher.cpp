#include "team/launcher.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/format.h"
#include "base/status.h"
#include "team/rendezvous.h"

namespace pw {
namespace {

std::optional<int64_t> number(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (!text || !*text) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  // The whole text must be a number, because Slurm's node lists and similar values also begin with one.
  if (error != std::errc{} || *end)
    throw Error(PW_INVALID_ARGUMENT,
                format("{} is '{}'; the launcher should have set a whole number", name, text));
  return value;
}

std::string text_of(const Environment& environment, const char* name) {
  const char* text = environment(name);
  return text ? text : "";
}

void set_rank(Launch& launch, std::optional<int64_t> rank, std::optional<int64_t> size,
              std::optional<int64_t> local_size, const char* launcher) {
  if (!rank || !size)
    throw Error(PW_INVALID_ARGUMENT,
                format("{}: the {} of this rank is not set", launcher, rank ? "size" : "rank"));
  check_rank(*rank, *size, launcher);
  if (local_size && (*local_size < 1 || *local_size > *size))
    throw Error(PW_INVALID_ARGUMENT,
                format("{}: {} ranks on this host is not from 1 to {}", launcher, *local_size, *size));
  launch.rank = static_cast<int>(*rank);
  launch.size = static_cast<int>(*size);
  launch.local_size = static_cast<int>(local_size.value_or(0));
  launch.one_host = launch.size == 1 || launch.local_size == launch.size;
}

bool read_peerway(const Environment& env, Launch& launch) {
  if (!env("PEERWAY_RANK")) return false;
  launch.by = Launch::By::peerway;
  set_rank(launch, number(env, "PEERWAY_RANK"), number(env, "PEERWAY_SIZE"),
           number(env, "PEERWAY_LOCAL_SIZE"), "peerway run (PEERWAY_RANK, PEERWAY_SIZE)");
  launch.rendezvous = text_of(env, "PEERWAY_RENDEZVOUS");
  launch.secret = text_of(env, "PEERWAY_SECRET");
  if (launch.size > 1 && (launch.rendezvous.empty() || launch.secret.empty()))
    throw Error(PW_INVALID_ARGUMENT, format("PEERWAY_RANK is set but {} is not; `peerway run` sets both",
                                            launch.secret.empty() ? "PEERWAY_SECRET" : "PEERWAY_RENDEZVOUS"));
  return true;
}

bool read_mpirun(const Environment& env, Launch& launch) {
  if (!env("OMPI_COMM_WORLD_RANK")) return false;
  launch.by = Launch::By::mpirun;
  set_rank(launch, number(env, "OMPI_COMM_WORLD_RANK"), number(env, "OMPI_COMM_WORLD_SIZE"),
           number(env, "OMPI_COMM_WORLD_LOCAL_SIZE"), "mpirun (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE)");
  launch.job = text_of(env, "PMIX_NAMESPACE");
  if (launch.job.empty()) launch.job = text_of(env, "OMPI_MCA_ess_base_jobid");
  return true;
}

/// MPICH's own launcher. Inside a Slurm job it starts its proxies through srun, whose variables do not
/// describe the ranks.
bool read_hydra(const Environment& env, Launch& launch) {
  if (!env("PMI_RANK") || !env("MPI_LOCALNRANKS")) return false;
  launch.by = Launch::By::hydra;
  set_rank(launch, number(env, "PMI_RANK"), number(env, "PMI_SIZE"), number(env, "MPI_LOCALNRANKS"),
           "mpiexec (PMI_RANK, PMI_SIZE)");
  return true;
}

bool read_slurm(const Environment& env, Launch& launch) {
  // A batch script and an interactive shell also have a SLURM_PROCID, but they are not a step that srun
  // started: no step id, or one of the special ones above 0xfffffff0.
  constexpr int64_t first_special = 0xfffffff0;
  const auto step = number(env, "SLURM_STEP_ID");
  if (!env("SLURM_PROCID") || !step || *step >= first_special) return false;
  launch.by = Launch::By::slurm;
  const auto step_tasks = number(env, "SLURM_STEP_NUM_TASKS");
  const auto nodes = number(env, "SLURM_STEP_NUM_NODES");
  set_rank(launch, number(env, "SLURM_PROCID"), step_tasks ? step_tasks : number(env, "SLURM_NTASKS"),
           std::nullopt, "srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS)");
  launch.one_host = launch.size == 1 || nodes == 1;
  if (launch.one_host) launch.local_size = launch.size;
  launch.job = format("slurm-{}.{}", text_of(env, "SLURM_JOB_ID"), *step);
  return true;
}

bool read_pmix(const Environment&, Launch& launch) {
  if (launch.pmix) launch.by = Launch::By::pmix;  // PMIx will give rank and size
  return launch.pmix;
}

/// The launchers in the order in which they are looked for, and the settings that select each of them.
struct Launcher {
  bool (*read)(const Environment&, Launch&);
  std::array<std::string_view, 3> wanted_as;
};
constexpr Launcher launchers[] = {
    {read_peerway, {"auto", "peerway"}}, {read_mpirun, {"auto", "mpirun", "pmix"}},
    {read_hydra, {"auto", "mpirun"}},    {read_slurm, {"auto", "slurm", "pmix"}},
    {read_pmix, {"auto", "pmix"}},
};

}  // namespace

Launch read_launch(const Environment& environment, const std::string& wanted) {
  if (wanted == "none") return {};
  Launch launch;
  launch.pmix = environment("PMIX_NAMESPACE") && environment("PMIX_RANK");
  for (const Launcher& each : launchers)
    if (std::ranges::find(each.wanted_as, wanted) != each.wanted_as.end() && each.read(environment, launch))
      return launch;
  if (wanted == "auto") return launch;
  throw Error(PW_BAD_CONFIG,
              format("PEERWAY_LAUNCHER is '{}', but the environment shows no sign of it; unset it, "
                     "or start the program with that launcher",
                     wanted));
}

}  // namespace pw

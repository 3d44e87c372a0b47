// Which launcher started this process, read from environments as the launchers really make them.
#include <gtest/gtest.h>

#include <map>

#include "base/status.h"
#include "team/launcher.h"

namespace pw {
namespace {

using Variables = std::map<std::string, std::string>;

Launch read(const Variables& variables, LauncherChoice wanted = LauncherChoice::automatic) {
  return read_launch(
      [&](const char* name) {
        const auto variable = variables.find(name);
        return variable == variables.end() ? nullptr : variable->second.c_str();
      },
      wanted);
}

const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"PMIX_NAMESPACE", "prterun-vm-12@1"},
                         {"PMIX_RANK", "1"}};
const Variables step{{"SLURM_JOB_ID", "12"}, {"SLURM_STEP_ID", "0"},        {"SLURM_PROCID", "3"},
                     {"SLURM_NTASKS", "4"},  {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_NUM_NODES", "1"}};

Variables with(Variables base, const Variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

TEST(Launcher, NobodyMakesATeamOfOne) {
  const Launch launch = read({{"SLURM_JOB_ID", "12"}, {"HOME", "/root"}});
  EXPECT_EQ(launch.by, Launch::By::nobody);
  EXPECT_EQ(launch.size, 1);
}

TEST(Launcher, OpenMpi) {
  const Launch launch = read(open_mpi);
  EXPECT_EQ(launch.by, Launch::By::mpirun);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.size, 4);
  EXPECT_FALSE(launch.one_host);
  EXPECT_TRUE(launch.pmix);
  EXPECT_EQ(launch.job, "prterun-vm-12@1");
  EXPECT_TRUE(read(with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}})).one_host);
}

// 4294967300 is 4 in 32 bits: all ranks would be believed to be on one host.
TEST(Launcher, MoreRanksOnTheHostThanInAllAreRefused) {
  for (const char* size : {"4294967300", "5", "0", "-1"})
    EXPECT_THROW(read(with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", size}})), Error) << size;
}

TEST(Launcher, SlurmStepButNotItsBatchScriptNorAnInteractiveShell) {
  const Launch launch = read(step);
  EXPECT_EQ(launch.by, Launch::By::slurm);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_TRUE(launch.one_host);
  EXPECT_EQ(launch.job, "slurm-12.0");
  Variables batch = step;
  batch.erase("SLURM_STEP_ID");
  EXPECT_EQ(read(batch).by, Launch::By::nobody);
  EXPECT_EQ(read(with(step, {{"SLURM_STEP_ID", "4294967290"}})).by, Launch::By::nobody);
  EXPECT_FALSE(read(with(step, {{"SLURM_STEP_NUM_NODES", "2"}})).one_host);
}

TEST(Launcher, TheInnermostOfSeveralIsBelieved) {
  EXPECT_EQ(read(with(step, open_mpi)).by, Launch::By::mpirun);
  // mpiexec of MPICH inside a Slurm job starts its proxies with srun
  const Launch hydra = read(with(step, {{"PMI_RANK", "0"}, {"PMI_SIZE", "8"}, {"MPI_LOCALNRANKS", "4"}}));
  EXPECT_EQ(hydra.by, Launch::By::hydra);
  EXPECT_EQ(hydra.size, 8);
  const Launch ours = read(with(open_mpi, {{"PEERWAY_RANK", "0"},
                                           {"PEERWAY_SIZE", "2"},
                                           {"PEERWAY_LOCAL_SIZE", "2"},
                                           {"PEERWAY_RENDEZVOUS", "unix:@x"},
                                           {"PEERWAY_SECRET", "00"}}));
  EXPECT_EQ(ours.by, Launch::By::peerway);
}

TEST(Launcher, TheSettingForcesOne) {
  EXPECT_EQ(read(with(step, open_mpi), LauncherChoice::slurm).by, Launch::By::slurm);
  EXPECT_EQ(read(open_mpi, LauncherChoice::none).by, Launch::By::nobody);
  EXPECT_EQ(read({{"PMIX_NAMESPACE", "n"}, {"PMIX_RANK", "1"}}).by, Launch::By::pmix);
  try {
    read(open_mpi, LauncherChoice::slurm);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), PW_BAD_CONFIG);
    EXPECT_NE(std::string(error.what()).find("PEERWAY_LAUNCHER is 'slurm'"), std::string::npos);
  }
}

TEST(Launcher, SenselessVariablesAreNamed) {
  const auto message = [](const Variables& variables) -> std::string {
    try {
      read(variables);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), PW_INVALID_ARGUMENT);
      return error.what();
    }
    return {};
  };
  EXPECT_NE(message(with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "1x"}})).find("OMPI_COMM_WORLD_RANK is '1x'"),
            std::string::npos);
  EXPECT_NE(message(with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "4"}})).find("rank 4 is not from 0 to 3"),
            std::string::npos);
  EXPECT_NE(message({{"PEERWAY_RANK", "0"}}).find("the size of this rank is not set"), std::string::npos);
  EXPECT_NE(message({{"PEERWAY_RANK", "0"}, {"PEERWAY_SIZE", "2"}, {"PEERWAY_SECRET", "0"}})
                .find("PEERWAY_RENDEZVOUS"),
            std::string::npos);
}

}  // namespace
}  // namespace pw

// The file by which ranks meet: private, whole, and an old one does no harm.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "team/rendezvous.h"
#include "team/rendezvous_file.h"

namespace pw {
namespace {

constexpr uint64_t kDeadline = 20'000'000'000;

class RendezvousFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    home_ = ::testing::TempDir() + "peerway-runtime-XXXXXX";
    ASSERT_NE(::mkdtemp(home_.data()), nullptr);
    ::setenv("XDG_RUNTIME_DIR", home_.c_str(), 1);
    launch_.job = "job/../1";
    launch_.one_host = true;
    launch_.size = 2;
  }
  void TearDown() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::remove_all(home_);
  }
  static pw_status status_of(auto&& body) {
    try {
      body();
    } catch (const Error& error) {
      return error.status();
    }
    return PW_OK;
  }
  std::string home_;
  Launch launch_;
};

TEST_F(RendezvousFiles, IsPrivateAndNamedAfterTheLaunch) {
  RendezvousFile file(launch_, 3);
  std::string why;
  EXPECT_FALSE(file.read(why).has_value());
  EXPECT_NE(why.find("rank 0 has not written"), std::string::npos);
  Ticket ticket;
  ticket.addresses = {{true, "@x", ""}};
  file.write(ticket);
  EXPECT_EQ(file.path(), home_ + "/peerway/job_.._1.3");
  struct stat known{};
  ASSERT_EQ(::stat(file.path().c_str(), &known), 0);
  EXPECT_EQ(known.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat((home_ + "/peerway").c_str(), &known), 0);
  EXPECT_EQ(known.st_mode & 0777, 0700u);
  EXPECT_EQ(file.read(why)->addresses[0].host, "@x");
  file.remove();
  EXPECT_FALSE(std::filesystem::exists(file.path()));
}

TEST_F(RendezvousFiles, WhatOthersCouldHaveWrittenIsNotTrusted) {
  RendezvousFile file(launch_, 0);
  Ticket ticket;
  ticket.addresses = {{true, "@x", ""}};
  file.write(ticket);
  ::chmod(file.path().c_str(), 0644);
  std::string why;
  EXPECT_EQ(status_of([&] { (void)file.read(why); }), PW_DENIED);
  ::chmod((home_ + "/peerway").c_str(), 0770);
  EXPECT_EQ(status_of([&] { RendezvousFile again(launch_, 0); }), PW_DENIED);
  std::filesystem::remove_all(home_ + "/peerway");
  std::filesystem::create_directory_symlink("/tmp", home_ + "/peerway");
  EXPECT_EQ(status_of([&] { RendezvousFile again(launch_, 0); }), PW_DENIED);
}

TEST_F(RendezvousFiles, AnotherUsersFolderIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  std::filesystem::create_directory(home_ + "/peerway");
  ::chmod((home_ + "/peerway").c_str(), 0700);
  ASSERT_EQ(::chown((home_ + "/peerway").c_str(), 65534, 65534), 0);
  EXPECT_EQ(status_of([&] { RendezvousFile file(launch_, 0); }), PW_DENIED);
}

TEST_F(RendezvousFiles, AFileOfAnEarlierRunIsReplaced) {
  RendezvousFile file(launch_, 0);
  Ticket old;
  old.addresses = {{true, "@peerway-nobody-listens-here", ""}};
  file.write(old);
  const uint64_t deadline = deadline_after(kDeadline);
  std::thread other([&] {
    join(1, 2, false, [&](std::string& why) { return file.read(why); }, deadline)->barrier(kDeadline);
  });
  Opening opening = open_server(2, Reach::host, deadline);
  ::usleep(20'000);  // time for the other to read the old one; it meets either way
  file.write(opening.ticket);
  join_own(2, std::move(opening), deadline)->barrier(kDeadline);
  other.join();
}

TEST_F(RendezvousFiles, RanksOnSeveralHostsNeedAJobWithAName) {
  launch_.job.clear();
  launch_.one_host = false;
  ::setenv("XDG_CACHE_HOME", home_.c_str(), 1);
  EXPECT_EQ(status_of([&] { RendezvousFile file(launch_, 0); }), PW_UNAVAILABLE);
  ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace pw

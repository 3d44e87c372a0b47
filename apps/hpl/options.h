// The options of a run, from the command line or from a file HPL.dat.
#ifndef HPL_OPTIONS_H
#define HPL_OPTIONS_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "panel.h"

namespace hpl {

/// The options are impossible; the message says what was found and what is allowed.
class BadOption : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Lists are run in all their combinations.
struct Options {
  std::vector<int64_t> n{1000}, nb{192};
  std::vector<std::pair<int, int>> grids{{1, 1}};  // P, Q
  std::vector<int> leaves{8}, depths{1};
  std::vector<Looking> pfacts{Looking::right}, rfacts{Looking::right};
  std::vector<std::string> broadcasts{"auto"};  // or names from broadcast.h
  bool by_rows = true;
  double threshold = 16;
  bool constant = false;  // a constant matrix
  std::string comm = "peerway", device = "host", blas, solution;
  std::string start = "auto";    // what starts a panel's broadcast: or "host", "stream"
  std::string staging = "auto";  // or "yes", "no": whether messages go through host memory
  int threads = 0;               // of each rank's BLAS; 0: the CPUs of the host divided by its ranks
  double rpeak = 0;              // GFLOP/s of each rank; 0: the device's peak
  double timeout_s = 600;
  bool json = false, help = false;
  std::vector<std::string> notes;  // entries of HPL.dat that are read differently from HPL
};

/// Throws BadOption.
Options parse(int argc, char** argv);
/// Reads the entries of HPL.dat into `options`. Throws BadOption.
void read_dat(const std::string& file, Options& options);
std::string help();

}  // namespace hpl

#endif

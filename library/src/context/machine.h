// What identifies a machine to a route table (costs measured on one are not used on another), and where a
// user keeps tables and rules.
#pragma once

#include <map>
#include <string>

namespace pw {

/// "cpu" -> "...", "cores" -> "2", "cuda:0" -> "NVIDIA H200", ...
std::map<std::string, std::string> machine();

/// The default place of this machine's route table.
std::string default_table_file();

/// The default place of the user's rules.
std::string default_rules_file();

}  // namespace pw

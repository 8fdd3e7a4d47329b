// The PTX files beside the tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace warpcheck {

inline std::string read_sample(const std::string& name) {
  std::ifstream file(std::string(WARPCHECK_FRONT_DIR) + "/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace warpcheck

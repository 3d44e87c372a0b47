"""What a change is worth: hours that faster transfers, faster files or notices to users free in a year."""

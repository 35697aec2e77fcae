"""Functions of bounded records: which statistic is made noisy, where and with what noise, by predicted loss."""

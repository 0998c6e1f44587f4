"""Cases of the campaign `disk`.

faulty_sqlite  SQLite on a disk that fails and loses what was not synced
store_case     a store on that disk
files_case     the files of other packages on a disk that fails
cluster_case   a real `moor up` on a small file system that becomes full and read-only
"""

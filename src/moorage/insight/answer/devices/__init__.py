"""Why claims get no devices on the nearest node.

requests          the finding for each question that leaves a request too few devices
shortages         requests that find too few, and the devices that expressions choose
errors            expressions whose error ended the search for devices
pools             drivers that publish nothing, or not all
selectors         selectors that leave too few, and their repair
taints            taints that requests do not tolerate
holders           devices that others have
together          requests that want the same devices
contention        requests that want more devices together than there are
conflicts         claims that a node cannot serve for no single reason
constraints       constraints that devices cannot satisfy together
constraint_fixes  what to do about them
compared          what a constraint compares: devices and their values
bridges           derived attributes between drivers that name a fact differently
derived           derived attributes that cannot be evaluated
"""

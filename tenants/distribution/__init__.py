"""Schools on the nodes of Citus: the node of each school, the tables of every node, and moving a school to another.

A school's schema, given to Citus (`citus_schema_distribute`), lies whole on one node. Requests go straight to that
node; the operator's work goes through the coordinator. Citus knows of each node's tables on every node, and makes
roles, functions and grants on all of them.

`placement`  the placement asked by the rest of the program, in place of one server's (`tenants.placement`)
`nodes`      the nodes, and the node of each school
`registry`   the registry on every node, and the functions with which a node admits a transaction
`moving`     moving a school to another node
"""
